import { limitExceeded } from '../../protocol/index.ts';
import { type Clock, sleep } from '../clock.ts';
import type { RateLimitsConfig } from './config.ts';

/** The recent requests of one server. */
interface Caller {
  /** Monotonic milliseconds at which requests of the last window arrived. */
  times: number[];
  /** Requests that are delayed or queued. */
  waiting: number;
  active: number;
  readonly queue: (() => void)[];
}

/** Maximum number of servers in memory; beyond it, idle ones are dropped. */
const maxCallers = 10_000;

/**
 * Limits the requests of each remote server (`rc_federation`): delays requests beyond a number per window,
 * handles a bounded number at the same time, and rejects the rest when too many wait.
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
   * Resolves when a request of this server may be handled.
   * @param signal ends the delay early
   * @returns a function to call when the request has ended
   * @throws MatrixError M_LIMIT_EXCEEDED when too many requests of this server wait
   */
  async admit(serverName: string, signal?: AbortSignal): Promise<() => void> {
    const caller = this.#callerOf(serverName);
    const isDelayed = this.#recordRequest(caller) > this.#limit.sleep_limit;
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

  /** Records a request. Returns the number of requests in the window that ends now. */
  #recordRequest(caller: Caller): number {
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
    if (this.#callers.size >= maxCallers) this.#dropIdle();
    const caller: Caller = { times: [], waiting: 0, active: 0, queue: [] };
    this.#callers.set(serverName, caller);
    return caller;
  }

  #dropIdle(): void {
    const start = this.#clock.monotonic() - this.#limit.window_size;
    for (const [serverName, { active, waiting, times }] of this.#callers) {
      if (active + waiting === 0 && (times.at(-1) ?? 0) <= start) this.#callers.delete(serverName);
    }
  }
}
