import type { Exchange } from '../requests/exchange.ts';
import { pathsOf, type Route } from '../routing/route.ts';

/** Paths of long polls: syncs and event streams. */
const longPoll = /\/(sync|events)$/;

/** Counts requests since the start of the process. */
export class RequestCounts {
  /** Numbers of requests that have arrived and are not answered yet. Long polls count as `sync`, all others as `other`. */
  readonly open = { sync: 0, other: 0 };
  /** Number of answered requests, including the requests of other servers. */
  answered = 0;
  /** Number of answered requests of other servers. */
  federation = 0;
  /** Number of answered long polls. */
  syncs = 0;
  /** Number of requests that were answered with a status of 500 or more. */
  failed = 0;
  readonly #kinds = new Map<Route, 'sync' | 'other'>();

  /** Counts a request that has arrived. */
  began(route: Route): void {
    this.open[this.#kindOf(route)] += 1;
  }

  /** Counts a request that has been answered. */
  ended(route: Route, { response }: Pick<Exchange, 'response'>): void {
    const kind = this.#kindOf(route);
    this.open[kind] -= 1;
    this.answered += 1;
    if (kind === 'sync') this.syncs += 1;
    if (route.contract.auth === 'server') this.federation += 1;
    if (response.statusCode >= 500) this.failed += 1;
  }

  #kindOf(route: Route): 'sync' | 'other' {
    let kind = this.#kinds.get(route);
    if (!kind) {
      kind = pathsOf(route).some((path) => longPoll.test(path)) ? 'sync' : 'other';
      this.#kinds.set(route, kind);
    }
    return kind;
  }
}
