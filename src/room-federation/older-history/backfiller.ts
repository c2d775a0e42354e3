import type { Cache, CacheRegistry } from '../../kernel/caches/index.ts';
import { type Clock, sleep } from '../../kernel/clock.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { HeadReader, RoomHead } from '../../room-engine/index.ts';
import type { RoomServers } from '../querying/room-servers.ts';
import type { ServerQueries } from '../querying/server-queries.ts';
import type { OlderEventFetcher } from './older-event-fetcher.ts';

/** Minimum number of events that are requested at a time. */
const minEvents = 20;

/** Maximum number of events that are requested at a time. */
const maxEvents = 100;

/** Maximum number of event ids per request. */
const maxIds = 20;

/** Maximum milliseconds for which a client waits. */
const clientTimeout = 10_000;

/** Milliseconds for which missing events are not requested again. */
const retryDelay = 5 * 60_000;

/** Maximum number of events of one response that are placed with a fetched state. */
const maxStates = 5;

/** Maximum number of events for which the time of the next request is cached. */
const maxRemembered = 10_000;

export interface BackfillerDeps {
  readonly heads: HeadReader;
  readonly older: OlderEventFetcher;
  readonly servers: RoomServers;
  readonly queries: ServerQueries;
  readonly clock: Clock;
  readonly log: Logger;
  readonly caches: CacheRegistry;
}

/** The progress of one call of `Backfiller.backfill`. */
interface Progress {
  /** Whether a request of the room has placed events since the call began. */
  hasPlaced: boolean;
  /** Whether the timeout of the call has passed. */
  isLate: boolean;
}

/** Backfills older history while a client waits for it. */
export class Backfiller {
  readonly #deps: BackfillerDeps;
  readonly #running = new LoadOnce<string, boolean>();
  /** The earliest time of the next request for an event, in milliseconds since the epoch, by event id. */
  readonly #retryAt: Cache<string, number>;

  constructor(deps: BackfillerDeps) {
    this.#deps = deps;
    this.#retryAt = deps.caches.create('backfill_pauses', {
      size: maxRemembered,
      isExpired: (until) => until <= deps.clock.now(),
    });
  }

  /** Whether the room has a remote server that could receive requests. Reads memory only. */
  isPossible(head: RoomHead): boolean {
    return this.#deps.servers.hasRemoteServers(head);
  }

  /**
   * Backfills missing events of the timeline and some events before them. Runs one request about a room at a time: a
   * call waits for the running one, and then requests those of its events that were not requested meanwhile. Waits at
   * most ten seconds; events that arrive later are stored.
   * @returns whether older events were placed
   */
  backfill(roomId: string, eventIds: readonly string[], limit: number): Promise<boolean> {
    return this.#withTimeout((progress) => this.#run(roomId, eventIds, limit, progress));
  }

  /** Resolves when no request is in progress. */
  settled(): Promise<void> {
    return this.#running.settled();
  }

  async #run(
    roomId: string,
    eventIds: readonly string[],
    limit: number,
    progress: Progress,
  ): Promise<boolean> {
    for (;;) {
      const running = this.#running.get(roomId);
      if (running) {
        if (await running) progress.hasPlaced = true;
        if (progress.isLate) return progress.hasPlaced;
        continue;
      }
      const head = await this.#deps.heads.get(roomId);
      if (this.#running.get(roomId)) continue;
      const now = this.#deps.clock.now();
      const wanted = eventIds.filter((id) => (this.#retryAt.get(id) ?? 0) <= now).slice(0, maxIds);
      if (wanted.length === 0 || !head || !this.isPossible(head)) return progress.hasPlaced;
      return (await this.#running.run(roomId, () => this.#fetch(head, wanted, limit))) || progress.hasPlaced;
    }
  }

  async #fetch(head: RoomHead, eventIds: readonly string[], limit: number): Promise<boolean> {
    const { queries, older, log, clock } = this.#deps;
    const { roomId } = head;
    const limits = { events: Math.max(minEvents, Math.min(limit, maxEvents)), states: maxStates };
    try {
      return await queries.run(head, [], (query) => older.fetch(query, eventIds, limits));
    } catch (error) {
      log.warn({ err: error, roomId }, 'Backfilling a room failed');
      return false;
    } finally {
      for (const id of eventIds) this.#retryAt.set(id, clock.now() + retryDelay);
    }
  }

  /** Waits for the result; after the timeout, returns whether events were placed until then. */
  async #withTimeout(work: (progress: Progress) => Promise<boolean>): Promise<boolean> {
    const waiting = new AbortController();
    const progress: Progress = { hasPlaced: false, isLate: false };
    const late = sleep(this.#deps.clock, clientTimeout, waiting.signal).then(() => {
      progress.isLate = true;
      return progress.hasPlaced;
    });
    try {
      return await Promise.race([work(progress), late]);
    } finally {
      waiting.abort();
    }
  }
}
