import { mapConcurrently } from '../../kernel/map-concurrently.ts';
import { HttpPusher, type HttpPusherDeps } from './http-pusher.ts';

/**
 * Number of pushers that begin to send at the same time after a start: the number of concurrent requests to gateways.
 */
const restoredAtOnce = 200;

/** Runs the pushers that send to push gateways; only pushers with something to send are in memory. */
export class HttpPushers {
  readonly #deps: HttpPusherDeps;
  readonly #active = new Map<number, HttpPusher>();

  constructor(deps: HttpPusherDeps) {
    this.#deps = deps;
  }

  /**
   * Sends the events that were pending when the server stopped, a bounded number of pushers at a time.
   * @param ids of pushers
   */
  async restore(ids: readonly number[]): Promise<void> {
    await mapConcurrently(ids, restoredAtOnce, async (id) => {
      if (this.#deps.stopping.aborted) return;
      const pusher = this.#activePusher(id, true);
      pusher.sendPending();
      await pusher.paused();
    });
  }

  /** Sends the pending events of a pusher. */
  sendPending(id: number): void {
    this.#activePusher(id).sendPending();
  }

  /** Sends the unread count of a pusher's user if it has changed. */
  updateBadge(id: number): void {
    this.#activePusher(id).updateBadge();
  }

  /** Resolves when the requests that are being sent have ended; the signal `stopping` aborts them. */
  async stop(): Promise<void> {
    await Promise.all(Array.from(this.#active.values(), (pusher) => pusher.stop()));
  }

  #activePusher(id: number, isRestored = false): HttpPusher {
    const active = this.#active.get(id);
    if (active) return active;
    const pusher = new HttpPusher(id, this.#deps, { onIdle: () => this.#active.delete(id), isRestored });
    this.#active.set(id, pusher);
    return pusher;
  }
}
