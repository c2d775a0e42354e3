import type { Cache, CacheRegistry } from '../../kernel/caches/index.ts';
import type { Clock, Timer } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { serverOfUser } from '../../protocol/index.ts';
import type { HeadReader, Placement, RoomHead, RoomTables, StoredEvent } from '../../room-engine/index.ts';
import { hasState } from '../checking/known-events.ts';
import type { ServerQueries } from '../querying/server-queries.ts';
import {
  fetchOnlyOnRead,
  hasMissed,
  type MissedEvent,
  postponeMissed,
  readMissed,
  readRoomsWithMissed,
} from './missed-store.ts';
import type { OlderEventFetcher } from './older-event-fetcher.ts';

const responseLimits = {
  /** Maximum number of events in one response. */
  events: 100,
  /** Maximum number of events of one response that are placed with a fetched state. */
  states: 30,
} as const;

/** Maximum number of event ids in one request. */
const maxIds = 20;

/**
 * Maximum number of missing events of one room that are backfilled in the background; further events are
 * backfilled only when a client reads them.
 */
const maxPerRoom = 1_000;

/** Maximum number of rooms that are processed at the same time. */
const maxRooms = 2;

/** Milliseconds before the first check of a room. */
const firstPause = 1_000;

/** Minimum milliseconds between two requests. */
const minPause = 50;

/** Milliseconds before an event is requested again for the first time. */
const minDelay = 10_000;

/** Maximum milliseconds before an event is requested again. */
const maxDelay = 24 * 3_600_000;

/** The factor by which the delay grows after each attempt. */
const growth = 3;

/** After this number of failed attempts (about five days), an event is backfilled only when a client reads it. */
const maxAttempts = 14;

/** Maximum number of responses about one room per day, of up to a hundred events each. */
const responsesPerDay = 1_000;

/** A day in milliseconds. */
const day = 24 * 3_600_000;

/** Maximum number of rooms whose responses are counted. */
const maxRoomsCounted = 10_000;

/**
 * Maximum number of servers that receive the requests first because they sent an event that refers to the missing
 * events, and so probably have them.
 */
const maxReferringServers = 3;

export interface MissedHistoryDeps {
  readonly caches: CacheRegistry;
  readonly database: Database;
  readonly heads: HeadReader;
  readonly placement: Placement;
  readonly older: OlderEventFetcher;
  readonly queries: ServerQueries;
  readonly serverName: string;
  /** Events by nid; events that are not stored are absent. */
  readonly eventsByNid: (nids: Iterable<number>) => Promise<ReadonlyMap<number, StoredEvent>>;
  /** Whether a user of this server was joined before an event. */
  readonly wasJoined: (head: RoomHead, stored: StoredEvent) => Promise<boolean>;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Backfills in the background the history that this server missed while it was in a room, where a gap was
 * wider than the part that is fetched with the next received event. Requests are rare, and are sent even if no client
 * reads the history (decision 0110).
 */
export class MissedHistory {
  readonly #deps: MissedHistoryDeps;
  readonly #timers = new Map<string, Timer>();
  /** Rooms that wait for a free slot. */
  readonly #waiting = new Set<string>();
  readonly #running = new Map<string, Promise<void>>();
  /** Number of responses by room id, counted for a day from `since` (milliseconds since the epoch) on. */
  readonly #responsesToday: Cache<string, { readonly since: number; readonly responses: number }>;
  #starting: Promise<void> | undefined;
  #closed = false;

  constructor(deps: MissedHistoryDeps) {
    this.#deps = deps;
    // The size is fixed, because the count of a room that the cache drops would start again within the same day.
    this.#responsesToday = deps.caches.create('backfill_responses', { size: maxRoomsCounted, fixed: true });
  }

  /** Schedules the rooms with missing events after a restart. */
  start(): void {
    this.#starting = this.#start();
  }

  /** Schedules a check of a room for missing events. */
  check(roomId: string): void {
    if (!this.#timers.has(roomId) && !this.#waiting.has(roomId)) this.#schedule(roomId, firstPause);
  }

  /** Resolves when no request is in progress; scheduled retries do not count. */
  async settled(): Promise<void> {
    await this.#starting;
    while (this.#running.size > 0) await Promise.all(this.#running.values());
  }

  /** Stops the scheduled requests, and waits for the requests in progress. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    this.#waiting.clear();
    await this.settled();
  }

  async #start(): Promise<void> {
    const { database, log } = this.#deps;
    try {
      if (!(await hasMissed(database.reader<RoomTables>()))) return;
      const rooms = await readRoomsWithMissed(database.scanner<RoomTables>());
      for (const roomId of rooms) this.#schedule(roomId, firstPause);
    } catch (error) {
      log.error({ err: error }, 'Missing history of rooms could not be read');
    }
  }

  #schedule(roomId: string, delay: number): void {
    this.#timers.get(roomId)?.cancel();
    this.#timers.delete(roomId);
    if (this.#closed) return;
    const timer = this.#deps.clock.setTimer(delay, () => {
      this.#timers.delete(roomId);
      this.#waiting.add(roomId);
      this.#next();
    });
    this.#timers.set(roomId, timer);
  }

  #next(): void {
    for (const roomId of this.#waiting) {
      if (this.#running.size >= maxRooms) return;
      if (this.#running.has(roomId)) continue;
      this.#waiting.delete(roomId);
      const running = this.#request(roomId).finally(() => {
        this.#running.delete(roomId);
        this.#next();
      });
      this.#running.set(roomId, running);
    }
  }

  /** Sends one request about a room. The pause before the next request is at least as long as this request took. */
  async #request(roomId: string): Promise<void> {
    const { clock, queries, log } = this.#deps;
    const startedAt = clock.monotonic();
    let pause: number | undefined;
    try {
      pause = await this.#backfillDue(roomId);
    } catch (error) {
      if (queries.closed) return;
      log.error({ err: error, roomId }, 'Backfilling missed history of a room failed');
      pause = minDelay;
    }
    const duration = clock.monotonic() - startedAt;
    if (pause !== undefined) this.#schedule(roomId, Math.max(pause, minPause, duration));
  }

  /**
   * Requests missing events whose time has come.
   * @returns minimum milliseconds until the next request; `undefined` when nothing is missing
   */
  async #backfillDue(roomId: string): Promise<number | undefined> {
    const { database, heads, clock, older, queries } = this.#deps;
    const head = await heads.get(roomId);
    if (!head) return undefined;
    const { roomNid } = head;
    const missed = await this.#missed(head);
    const due = missed.filter(({ retryTs }) => retryTs <= clock.now());
    if (due.length === 0) return missed[0] && missed[0].retryTs - clock.now();
    const pause = this.#pauseByDailyLimit(roomId);
    if (pause !== undefined) return pause;
    const { wanted, referringServers } = await this.#wanted(head, due);
    if (wanted.length === 0) return 0;
    const ids = wanted.map(({ eventId }) => eventId);
    const isPlaced = await queries.run(head, referringServers, (query) =>
      older.fetch(query, ids, responseLimits),
    );
    if (queries.closed) return undefined;
    const now = clock.now();
    if (isPlaced)
      await postponeMissed(
        database,
        roomNid,
        wanted.map((missed) => ({ ...missed, retryTs: now })),
      );
    else await this.#failed(head, wanted);
    return 0;
  }

  /**
   * Returns the next missing events to request; none for a room that this server has left. Ends the background backfill
   * of events beyond `maxPerRoom`, or of all events of a room that was left.
   */
  async #missed(head: RoomHead): Promise<MissedEvent[]> {
    const { database, serverName, log } = this.#deps;
    const { roomNid, roomId } = head;
    const reader = database.reader<RoomTables>();
    const isInRoom = head.servers.has(serverName);
    const offset = isInRoom ? maxPerRoom : 0;
    const excess = await readMissed(reader, roomNid, { offset, limit: maxPerRoom });
    if (excess.length > 0) {
      if (isInRoom)
        log.info({ roomId, count: excess.length }, 'A room has too many missing events to backfill them all');
      await fetchOnlyOnRead(
        database,
        roomNid,
        excess.map(({ eventId }) => eventId),
      );
    }
    return isInRoom ? readMissed(reader, roomNid, { limit: maxIds }) : [];
  }

  /**
   * Returns the due events to which an event refers that was sent while this server was in the room, and the servers of
   * the senders of these referring events. The other due events are backfilled only when a client reads them.
   */
  async #wanted(
    head: RoomHead,
    due: readonly MissedEvent[],
  ): Promise<{ readonly wanted: readonly MissedEvent[]; readonly referringServers: readonly string[] }> {
    const { database, placement, eventsByNid, wasJoined } = this.#deps;
    const known = await placement.find(due.map(({ eventId }) => eventId));
    const referringEvents = await eventsByNid(
      due.map(({ referencedBy }) => referencedBy).filter((nid) => nid !== undefined),
    );
    const wasInRoomByState = new Map<number | undefined, Promise<boolean>>();
    const wanted: MissedEvent[] = [];
    const referringServers = new Set<string>();
    for (const missed of due) {
      const stored = known.get(missed.eventId);
      const referringEvent =
        missed.referencedBy === undefined ? undefined : referringEvents.get(missed.referencedBy);
      if (!referringEvent || (stored && hasState(stored))) continue;
      const wasInRoom = wasInRoomByState.get(referringEvent.stateBefore) ?? wasJoined(head, referringEvent);
      wasInRoomByState.set(referringEvent.stateBefore, wasInRoom);
      if (!(await wasInRoom)) continue;
      wanted.push(missed);
      referringServers.add(serverOfUser(referringEvent.event.sender));
    }
    const unwanted = due.filter((missed) => !wanted.includes(missed)).map(({ eventId }) => eventId);
    if (unwanted.length > 0) await fetchOnlyOnRead(database, head.roomNid, unwanted);
    return { wanted, referringServers: [...referringServers].slice(0, maxReferringServers) };
  }

  async #failed({ roomNid, roomId }: RoomHead, events: readonly MissedEvent[]): Promise<void> {
    const { database, clock, log } = this.#deps;
    const failed = events.map(({ eventId, attempts }) => {
      const delay = Math.min(minDelay * growth ** attempts, maxDelay);
      return { eventId, attempts: attempts + 1, retryTs: clock.now() + delay };
    });
    await postponeMissed(database, roomNid, failed);
    const givenUp = failed.filter(({ attempts }) => attempts >= maxAttempts).map(({ eventId }) => eventId);
    if (givenUp.length === 0) return;
    log.info({ roomId, eventIds: givenUp }, 'No server could backfill prev_events');
    await fetchOnlyOnRead(database, roomNid, givenUp);
  }

  /** Counts a request. @returns milliseconds to wait if the daily limit of the room is reached */
  #pauseByDailyLimit(roomId: string): number | undefined {
    const now = this.#deps.clock.now();
    const before = this.#responsesToday.get(roomId);
    const { since, responses } = before && now - before.since < day ? before : { since: now, responses: 0 };
    if (responses >= responsesPerDay) return since + day - now;
    this.#responsesToday.set(roomId, { since, responses: responses + 1 });
    return undefined;
  }
}
