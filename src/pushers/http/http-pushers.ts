import { HttpPusher, type HttpPusherDeps } from './http-pusher.ts';

/** The pushers of push gateways that have something to send. */
export class HttpPushers {
  readonly #deps: HttpPusherDeps;
  readonly #active = new Map<number, HttpPusher>();

  constructor(deps: HttpPusherDeps) {
    this.#deps = deps;
  }

  /** Sends what is pending since the last stop. @param ids of pushers */
  restore(ids: readonly number[]): void {
    for (const id of ids) this.#of(id, true).kick();
  }

  /** Sends what is pending for a pusher. */
  kick(id: number): void {
    this.#of(id).kick();
  }

  /** Sends the unread count of a pusher's user if it has changed. */
  updateBadge(id: number): void {
    this.#of(id).updateBadge();
  }

  /** Resolves when the requests that are being sent have ended; the signal of `stopping` aborts them. */
  async stop(): Promise<void> {
    await Promise.all(Array.from(this.#active.values(), (pusher) => pusher.stop()));
  }

  #of(id: number, isRestored = false): HttpPusher {
    const known = this.#active.get(id);
    if (known) return known;
    const pusher = new HttpPusher(id, this.#deps, { ended: () => this.#active.delete(id), isRestored });
    this.#active.set(id, pusher);
    return pusher;
  }
}
