import { limitExceeded } from '../../protocol/index.ts';
import { type Clock, sleep } from '../clock.ts';
import type { RateLimitsConfig } from './config.ts';

/** The recent requests of one server. */
interface Caller {
  /** Monotonic milliseconds at which requests of the last window arrived. */
  times: number[];
  /** Requests that are delayed or queued. */
  waiting: number;
  /** Number of requests that are being handled. */
  active: number;
  /** Functions that let the queued requests be handled, the earliest first. */
  readonly queue: Set<() => void>;
}

/** Default maximum number of servers in memory. */
const defaultMaxCallers = 10_000;

/**
 * Limits the requests of each remote server (`rc_federation`): delays requests beyond a number per window,
 * handles a bounded number at the same time, and rejects requests while too many wait. Bounds the number of servers in
 * memory: forgets servers without requests in progress; if every server has requests in progress, rejects requests of
 * further servers.
 */
export class ServerLimiter {
  readonly #limit: RateLimitsConfig['rc_federation'];
  readonly #clock: Clock;
  readonly #callers = new Map<string, Caller>();
  readonly #maxCallers: number;

  /** @param maxCallers maximum number of servers in memory */
  constructor(limit: RateLimitsConfig['rc_federation'], clock: Clock, maxCallers = defaultMaxCallers) {
    this.#limit = limit;
    this.#maxCallers = maxCallers;
    this.#clock = clock;
  }

  /**
   * Resolves when a request of this server may be handled.
   * @param signal ends the wait
   * @returns a function to call when the request has ended
   * @throws MatrixError M_LIMIT_EXCEEDED when too many requests of this server wait, when too many servers have requests
   * in progress, or when `signal` aborts
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
      try {
        if (isDelayed) await sleep(this.#clock, this.#limit.sleep_delay, signal);
        if (signal?.aborted) throw limitExceeded(this.#limit.window_size);
        if (caller.active >= this.#limit.concurrent) await this.#queued(caller, signal);
        else caller.active++;
      } finally {
        caller.waiting--;
      }
    } else caller.active++;
    return () => {
      const [next] = caller.queue;
      if (next) next();
      else caller.active--;
    };
  }

  /** Resolves when another request ends and passes its place to this one. @throws MatrixError when `signal` aborts */
  #queued({ queue }: Caller, signal: AbortSignal | undefined): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const leave = () => {
        queue.delete(go);
        signal?.removeEventListener('abort', giveUp);
      };
      const go = () => {
        leave();
        resolve();
      };
      const giveUp = () => {
        leave();
        reject(limitExceeded(this.#limit.window_size));
      };
      queue.add(go);
      signal?.addEventListener('abort', giveUp, { once: true });
    });
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
    if (this.#callers.size >= this.#maxCallers) this.#dropIdle();
    if (this.#callers.size >= this.#maxCallers) throw limitExceeded(this.#limit.window_size);
    const caller: Caller = { times: [], waiting: 0, active: 0, queue: new Set() };
    this.#callers.set(serverName, caller);
    return caller;
  }

  /**
   * Drops the servers without a request in the last window. If these are less than a tenth of the maximum, also drops
   * other idle servers, the earliest first, so that the next new servers need no scan.
   */
  #dropIdle(): void {
    const start = this.#clock.monotonic() - this.#limit.window_size;
    const idle: string[] = [];
    for (const [serverName, { active, waiting, times }] of this.#callers) {
      if (active + waiting > 0) continue;
      if ((times.at(-1) ?? 0) <= start) this.#callers.delete(serverName);
      else idle.push(serverName);
    }
    const surplus = this.#callers.size - Math.floor(this.#maxCallers * 0.9);
    for (const serverName of idle.slice(0, Math.max(0, surplus))) this.#callers.delete(serverName);
  }
}
