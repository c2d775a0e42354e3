import type { Logger } from '../../kernel/observability/index.ts';
import type { RoomVersion } from '../../protocol/index.ts';
import type { QueryBackoff } from './query-backoff.ts';

/** None of the servers that may receive requests provides what an event needs. */
export class FetchFailed extends Error {
  override readonly name = 'FetchFailed';
  /** How the servers have answered; set when the state before an event could not be fetched. */
  readonly outcome: QueryOutcome | undefined;

  constructor(message: string, options: ErrorOptions & { readonly outcome?: QueryOutcome } = {}) {
    super(message, options);
    this.outcome = options.outcome;
  }
}

/**
 * How the servers have answered: all with M_FORBIDDEN, at least one otherwise or not at all, or no request was sent.
 */
export type QueryOutcome = 'all refuse' | 'mixed' | 'no request';

/** Timeouts of one request in milliseconds: `long` is for responses with whole states and auth chains. */
export const requestTimeout = { short: 15_000, long: 60_000 } as const;

export interface ServerQueryDeps {
  readonly roomId: string;
  readonly roomNid: number;
  readonly version: RoomVersion;
  /** Selects the servers that receive the requests, best first; called before the first request. */
  readonly servers: () => Promise<readonly string[]>;
  /** When it aborts, no more requests are sent. */
  readonly signal: AbortSignal;
  readonly backoff: QueryBackoff;
  readonly log: Logger;
}

/** Requests about one room, to one server after another. */
export class ServerQuery {
  readonly roomId: string;
  readonly roomNid: number;
  readonly version: RoomVersion;
  readonly signal: AbortSignal;
  readonly #deps: ServerQueryDeps;
  #servers: Promise<readonly string[]> | undefined;
  readonly #sentRequests = new Set<string>();
  /** Servers whose failure is recorded, so that one query lengthens the backoff of a server only once. */
  readonly #failed = new Set<string>();
  #outcome: QueryOutcome = 'no request';

  constructor(deps: ServerQueryDeps) {
    this.roomId = deps.roomId;
    this.roomNid = deps.roomNid;
    this.version = deps.version;
    this.signal = deps.signal;
    this.#deps = deps;
  }

  /** The servers that receive the requests, best first. */
  servers(): Promise<readonly string[]> {
    this.#servers ??= this.#deps.servers();
    return this.#servers;
  }

  /** How the servers have answered so far. */
  get outcome(): QueryOutcome {
    return this.#outcome;
  }

  /**
   * Records that a request is sent to a server.
   * @returns whether this is the first time in this query: the same request is not sent twice to a server
   */
  claimRequest(server: string, request: string): boolean {
    const key = `${server} ${request}`;
    if (this.#sentRequests.has(key)) return false;
    this.#sentRequests.add(key);
    return true;
  }

  /**
   * Sends a request to one server after another until one returns what is needed. Leaves out servers that already
   * received the same request. A server without a useful answer goes into backoff for this room; a useful answer ends its
   * backoff.
   * @param request names the request: the endpoint and the events that it is about
   * @param send sends the request to a server; returns `undefined` or throws when the server does not return what is needed
   * @returns `undefined` when no server returned what is needed
   */
  async request<T>(
    request: string,
    send: (server: string) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const { backoff, log } = this.#deps;
    for (const server of await this.servers()) {
      if (this.signal.aborted) return undefined;
      if (!this.claimRequest(server, request)) continue;
      try {
        const answer = await send(server);
        this.#outcome = 'mixed';
        if (answer !== undefined) {
          backoff.recordSuccess(this.roomId, server);
          this.#failed.delete(server);
          return answer;
        }
        log.debug(
          { server, roomId: this.roomId, query: request },
          'A remote server did not provide events or state that a room needs',
        );
      } catch (error) {
        if (this.signal.aborted) return undefined;
        this.#outcome = isForbidden(error) && this.#outcome !== 'mixed' ? 'all refuse' : 'mixed';
        log.debug(
          { err: error, server, roomId: this.roomId, query: request },
          'A remote server did not provide events or state that a room needs',
        );
      }
      if (!this.#failed.has(server)) backoff.recordFailure(this.roomId, server);
      this.#failed.add(server);
    }
    return undefined;
  }
}

/** Whether a server has answered with M_FORBIDDEN. */
function isForbidden(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === 'M_FORBIDDEN';
}
