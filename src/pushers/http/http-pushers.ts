import { HttpPusher, type HttpPusherDeps } from './http-pusher.ts';

/** Runs the pushers that send to push gateways; only those with something to send are in memory. */
export class HttpPushers {
  readonly #deps: HttpPusherDeps;
  readonly #active = new Map<number, HttpPusher>();

  constructor(deps: HttpPusherDeps) {
    this.#deps = deps;
  }

  /** Sends the events that were pending when the server stopped. @param ids of pushers */
  restore(ids: readonly number[]): void {
    for (const id of ids) this.#of(id, true).kick();
  }

  /** Sends the pending events of a pusher. */
  kick(id: number): void {
    this.#of(id).kick();
  }

  /** Sends the unread count of a pusher's user if it has changed. */
  updateBadge(id: number): void {
    this.#of(id).updateBadge();
  }

  /** Resolves when the requests that are being sent have ended; the signal `stopping` aborts them. */
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
