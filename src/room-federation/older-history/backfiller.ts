import { RecentlyUsed } from '../../kernel/caches/index.ts';
import { type Clock, sleep } from '../../kernel/clock.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { HeadReader, RoomHead } from '../../room-engine/index.ts';
import type { RoomServers } from '../asking/room-servers.ts';
import type { ServerQueries } from '../asking/server-queries.ts';
import type { OlderEventFetcher } from './older-event-fetcher.ts';

/** Events of one answer, at least and at most; ids that a question names. */
const [fewest, most, maxNamed] = [20, 100, 20];

/** Milliseconds that a client waits, and for which events that nobody gives are not asked for again. */
const [clientTimeout, pause] = [10_000, 5 * 60_000];

/** Events of one answer whose states have to be fetched. */
const maxStates = 5;

/** Events that were asked for lately. */
const maxRemembered = 20_000;

/** Fetches older history for those who read it. */
export class Backfiller {
  readonly #deps: {
    readonly heads: HeadReader;
    readonly older: OlderEventFetcher;
    readonly servers: RoomServers;
    readonly queries: ServerQueries;
    readonly clock: Clock;
    readonly log: Logger;
  };
  readonly #running = new LoadOnce<string, boolean>();
  /** Until when an event is not asked for again. */
  readonly #asked = new RecentlyUsed<string, number>({ max: maxRemembered });

  constructor(parts: {
    readonly heads: HeadReader;
    readonly older: OlderEventFetcher;
    readonly servers: RoomServers;
    readonly queries: ServerQueries;
    readonly clock: Clock;
    readonly log: Logger;
  }) {
    this.#deps = parts;
  }

  /** Whether somebody could be asked about the room: a look into memory. */
  isPossible(head: RoomHead): boolean {
    return this.#deps.servers.hasRemoteServers(head);
  }

  /**
   * Fetches events that the timeline names and does not have, and some that come before them. Who asks for the same
   * room at the same time shares one question. Waits ten seconds at the most; what arrives later is kept.
   * @returns whether there is more to read than before
   */
  async backfill(roomId: string, eventIds: readonly string[], limit: number): Promise<boolean> {
    const running = this.#running.get(roomId);
    if (running) return this.#inTime(running);
    const now = this.#deps.clock.now();
    const wanted = eventIds.filter((id) => (this.#asked.get(id) ?? 0) <= now).slice(0, maxNamed);
    const head = await this.#deps.heads.get(roomId);
    if (wanted.length === 0 || !head || !this.isPossible(head)) return false;
    return this.#inTime(this.#running.run(roomId, () => this.#fetch(head, wanted, limit)));
  }

  settled(): Promise<void> {
    return this.#running.settled();
  }

  async #fetch(head: RoomHead, eventIds: readonly string[], limit: number): Promise<boolean> {
    const { queries, older, log, clock } = this.#deps;
    const { roomId } = head;
    const limits = { events: Math.max(fewest, Math.min(limit, most)), states: maxStates };
    try {
      return await queries.run(head, [], (query) => older.fetch(query, eventIds, limits));
    } catch (error) {
      log.warn({ err: error, roomId }, 'Older history of a room could not be taken');
      return false;
    } finally {
      for (const id of eventIds) this.#asked.set(id, clock.now() + pause);
    }
  }

  /** What comes of it, or `false` when that takes too long. */
  async #inTime(running: Promise<boolean>): Promise<boolean> {
    const waiting = new AbortController();
    const late = sleep(this.#deps.clock, clientTimeout, waiting.signal).then(() => false);
    try {
      return await Promise.race([running, late]);
    } finally {
      waiting.abort();
    }
  }
}
