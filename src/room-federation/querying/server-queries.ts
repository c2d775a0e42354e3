import type { Clock } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { RoomHead } from '../../room-engine/index.ts';
import type { QueryBackoff } from './query-backoff.ts';
import type { RoomServers } from './room-servers.ts';
import { ServerQuery } from './server-query.ts';

/** Maximum milliseconds of a query, with all its requests. */
const maxDuration = 120_000;

/** Opens queries about rooms, and aborts them all on shutdown. */
export class ServerQueries {
  readonly #deps: {
    readonly servers: RoomServers;
    readonly backoff: QueryBackoff;
    readonly clock: Clock;
    readonly log: Logger;
  };
  readonly #closing = new AbortController();

  constructor(deps: {
    readonly servers: RoomServers;
    readonly backoff: QueryBackoff;
    readonly clock: Clock;
    readonly log: Logger;
  }) {
    this.#deps = deps;
  }

  /** Whether `close` was called. */
  get closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /**
   * Runs `work` with a new query, and aborts the query after two minutes.
   * @param first servers that receive the requests before other servers
   */
  async run<T>(
    head: RoomHead,
    first: readonly string[],
    work: (query: ServerQuery) => Promise<T>,
  ): Promise<T> {
    const { servers, clock } = this.#deps;
    const { roomId, roomNid, version } = head;
    const selectServers = () => servers.serversToQuery(head, first);
    const ending = new AbortController();
    const end = () => ending.abort();
    const timer = clock.setTimer(maxDuration, end);
    this.#closing.signal.addEventListener('abort', end, { once: true });
    if (this.closed) end();
    try {
      const { signal } = ending;
      return await work(
        new ServerQuery({ ...this.#deps, roomId, roomNid, version, servers: selectServers, signal }),
      );
    } finally {
      timer.cancel();
      this.#closing.signal.removeEventListener('abort', end);
    }
  }

  /** Aborts all queries, because the server stops. */
  close(): void {
    this.#closing.abort();
  }
}
