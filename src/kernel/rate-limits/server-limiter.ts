import { limitExceeded } from '../../protocol/index.ts';
import { type Clock, sleep } from '../clock.ts';
import type { RateLimitsConfig } from './config.ts';

/** What is known of the requests of one server. */
interface Caller {
  /** When requests were let in, by the monotonic clock; those of the last window. */
  times: number[];
  /** Requests that are delayed or wait for their turn. */
  waiting: number;
  active: number;
  readonly queue: (() => void)[];
}

/** Servers of which something is known; when there are more, those that do nothing are forgotten. */
const maxCallers = 10_000;

/**
 * How much of other servers' requests is worked on: those beyond a number in a window are delayed, some are worked on
 * at the same time, and when too many wait the rest is refused (`rc_federation`).
 */
export class ServerLimiter {
  readonly #limit: RateLimitsConfig['rc_federation'];
  readonly #clock: Clock;
  readonly #callers = new Map<string, Caller>();

  constructor(limit: RateLimitsConfig['rc_federation'], clock: Clock) {
    this.#limit = limit;
    this.#clock = clock;
  }

  /**
   * Resolves when it is the turn of a request of that server.
   * @returns to be called when the request is over
   * @throws MatrixError M_LIMIT_EXCEEDED
   */
  async admit(serverName: string, signal?: AbortSignal): Promise<() => void> {
    const caller = this.#callerOf(serverName);
    const isDelayed = this.#count(caller) > this.#limit.sleep_limit;
    const mustWait = isDelayed || caller.active >= this.#limit.concurrent;
    if (mustWait) {
      if (caller.waiting >= this.#limit.reject_limit) {
        caller.times.pop();
        throw limitExceeded(this.#limit.window_size);
      }
      caller.waiting++;
      if (isDelayed) await sleep(this.#clock, this.#limit.sleep_delay, signal);
      if (caller.active >= this.#limit.concurrent) await new Promise<void>((go) => caller.queue.push(go));
      else caller.active++;
      caller.waiting--;
    } else caller.active++;
    return () => {
      const next = caller.queue.shift();
      if (next) next();
      else caller.active--;
    };
  }

  /** How many requests there are in the window that ends with this one. */
  #count(caller: Caller): number {
    const now = this.#clock.monotonic();
    const start = now - this.#limit.window_size;
    const first = caller.times.findIndex((time) => time > start);
    caller.times = first === -1 ? [] : caller.times.slice(first);
    caller.times.push(now);
    return caller.times.length;
  }

  #callerOf(serverName: string): Caller {
    const known = this.#callers.get(serverName);
    if (known) return known;
    if (this.#callers.size >= maxCallers) this.#forget();
    const caller: Caller = { times: [], waiting: 0, active: 0, queue: [] };
    this.#callers.set(serverName, caller);
    return caller;
  }

  #forget(): void {
    const start = this.#clock.monotonic() - this.#limit.window_size;
    for (const [serverName, { active, waiting, times }] of this.#callers) {
      if (active + waiting === 0 && (times.at(-1) ?? 0) <= start) this.#callers.delete(serverName);
    }
  }
}
