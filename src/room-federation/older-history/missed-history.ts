import { RecentlyUsed } from '../../kernel/caches/index.ts';
import type { Clock, Timer } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { serverOfUser } from '../../protocol/index.ts';
import type { HeadReader, Placement, RoomHead, RoomTables, StoredEvent } from '../../room-engine/index.ts';
import type { ServerQueries } from '../asking/server-queries.ts';
import { hasState } from '../settled.ts';
import {
  fetchOnlyOnRead,
  hasMissed,
  type MissedEvent,
  postponeMissed,
  readMissed,
  readRoomsWithMissed,
} from './missed-store.ts';
import type { OlderEventFetcher } from './older-event-fetcher.ts';

/** Events of one answer, and those of them whose states have to be fetched; ids that a question names. */
const [answerLimits, maxNamed] = [{ events: 100, states: 30 }, 20] as const;

/** Events of one room that are asked for; the others are left to those who read. */
const maxOfRoom = 1_000;

/** Rooms that are worked on at the same time. */
const roomsAtOnce = 2;

/** Milliseconds: before a gap is first looked at, and between two questions at least. */
const [firstPause, shortestPause] = [1_000, 50];

/** Milliseconds before something is asked for again: the first time, and at most. */
const [firstDelay, longestDelay] = [10_000, 24 * 3_600_000];

/** By what the delay grows, and after how many attempts an event is left to those who read: after some six days. */
const [growth, maxAttempts] = [3, 14];

/** Answers about one room in a day, of a hundred events each; rooms for which that is counted. */
const [answersADay, day, roomsCounted] = [1_000, 24 * 3_600_000, 10_000];

/** Servers that may know best, since they have named what is missed. */
const maxNamers = 3;

export interface MissedHistoryDeps {
  readonly database: Database;
  readonly heads: HeadReader;
  readonly placement: Placement;
  readonly older: OlderEventFetcher;
  readonly queries: ServerQueries;
  readonly serverName: string;
  /** The events with these numbers. */
  readonly eventsByNid: (nids: Iterable<number>) => Promise<ReadonlyMap<number, StoredEvent>>;
  /** Whether a user of this server was in the room before an event. */
  readonly wasJoined: (head: RoomHead, stored: StoredEvent) => Promise<boolean>;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Fetches what other servers have said while this one was in the room and could not hear it, where that was more than is
 * fetched at once when the next event arrives. Bit by bit, and whether anybody reads it or not: see decision 0110.
 */
export class MissedHistory {
  readonly #deps: MissedHistoryDeps;
  readonly #timers = new Map<string, Timer>();
  /** Rooms whose turn comes next. */
  readonly #waiting = new Set<string>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #spent = new RecentlyUsed<string, { readonly since: number; readonly answers: number }>({
    max: roomsCounted,
  });
  #starting: Promise<void> | undefined;
  #closed = false;

  constructor(deps: MissedHistoryDeps) {
    this.#deps = deps;
  }

  /** Takes up what was left when the program ended. */
  start(): void {
    this.#starting = this.#start();
  }

  /** Something may be missed in a room. */
  check(roomId: string): void {
    if (!this.#timers.has(roomId) && !this.#waiting.has(roomId)) this.#planAfter(roomId, firstPause);
  }

  /** Resolves when nothing is asked any more; what waits for its time does not count. */
  async settled(): Promise<void> {
    await this.#starting;
    while (this.#running.size > 0) await Promise.all(this.#running.values());
  }

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
      for (const roomId of rooms) this.#planAfter(roomId, firstPause);
    } catch (error) {
      log.error({ err: error }, 'What was missed in rooms could not be looked up');
    }
  }

  #planAfter(roomId: string, delay: number): void {
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
      if (this.#running.size >= roomsAtOnce) return;
      if (this.#running.has(roomId)) continue;
      this.#waiting.delete(roomId);
      const running = this.#turn(roomId).finally(() => {
        this.#running.delete(roomId);
        this.#next();
      });
      this.#running.set(roomId, running);
    }
  }

  /** One question about a room; the next one comes after a pause as long as that took. */
  async #turn(roomId: string): Promise<void> {
    const { clock, queries, log } = this.#deps;
    const begun = clock.monotonic();
    let pause: number | undefined;
    try {
      pause = await this.#ask(roomId);
    } catch (error) {
      if (queries.closed) return;
      log.error({ err: error, roomId }, 'What was missed in a room could not be fetched');
      pause = firstDelay;
    }
    const took = clock.monotonic() - begun;
    if (pause !== undefined) this.#planAfter(roomId, Math.max(pause, shortestPause, took));
  }

  /** @returns milliseconds until there is more to do, at least; `undefined` when there is nothing */
  async #ask(roomId: string): Promise<number | undefined> {
    const { database, heads, clock, older, queries } = this.#deps;
    const head = await heads.get(roomId);
    if (!head) return undefined;
    const { roomNid } = head;
    const missed = await this.#missed(head);
    const due = missed.filter(({ retryTs }) => retryTs <= clock.now());
    if (due.length === 0) return missed[0] && missed[0].retryTs - clock.now();
    const pause = this.#pauseOf(roomId);
    if (pause !== undefined) return pause;
    const { wanted, namers } = await this.#wanted(head, due);
    if (wanted.length === 0) return 0;
    const ids = wanted.map(({ eventId }) => eventId);
    const isHelped = await queries.run(head, namers, (query) => older.fetch(query, ids, answerLimits));
    if (queries.closed) return undefined;
    const now = clock.now();
    if (isHelped)
      await postponeMissed(
        database,
        roomNid,
        wanted.map((one) => ({ ...one, retryTs: now })),
      );
    else await this.#failed(head, wanted);
    return 0;
  }

  /** What is to be asked for next; nothing of a room that this server has left. */
  async #missed(head: RoomHead): Promise<MissedEvent[]> {
    const { database, serverName, log } = this.#deps;
    const { roomNid, roomId } = head;
    const reader = database.reader<RoomTables>();
    const isHere = head.servers.has(serverName);
    const offset = isHere ? maxOfRoom : 0;
    const tooMany = await readMissed(reader, roomNid, { offset, limit: maxOfRoom });
    if (tooMany.length > 0) {
      if (isHere) log.info({ roomId, count: tooMany.length }, 'A room has too many gaps to fill them all');
      await fetchOnlyOnRead(
        database,
        roomNid,
        tooMany.map(({ eventId }) => eventId),
      );
    }
    return isHere ? readMissed(reader, roomNid, { limit: maxNamed }) : [];
  }

  /** Those that were said while this server was in the room; the others are left to those who read. */
  async #wanted(
    head: RoomHead,
    due: readonly MissedEvent[],
  ): Promise<{ readonly wanted: readonly MissedEvent[]; readonly namers: readonly string[] }> {
    const { database, placement, eventsByNid, wasJoined: wasHere } = this.#deps;
    const known = await placement.find(due.map(({ eventId }) => eventId));
    const named = await eventsByNid(
      due.map(({ referencedBy: namedBy }) => namedBy).filter((nid) => nid !== undefined),
    );
    const byState = new Map<number | undefined, Promise<boolean>>();
    const wanted: MissedEvent[] = [];
    const namers = new Set<string>();
    for (const one of due) {
      const stored = known.get(one.eventId);
      const namedBy = one.referencedBy === undefined ? undefined : named.get(one.referencedBy);
      if (!namedBy || (stored && hasState(stored))) continue;
      const isOurs = byState.get(namedBy.stateBefore) ?? wasHere(head, namedBy);
      byState.set(namedBy.stateBefore, isOurs);
      if (!(await isOurs)) continue;
      wanted.push(one);
      namers.add(serverOfUser(namedBy.event.sender));
    }
    const others = due.filter((one) => !wanted.includes(one)).map(({ eventId }) => eventId);
    if (others.length > 0) await fetchOnlyOnRead(database, head.roomNid, others);
    return { wanted, namers: [...namers].slice(0, maxNamers) };
  }

  async #failed({ roomNid, roomId }: RoomHead, events: readonly MissedEvent[]): Promise<void> {
    const { database, clock, log } = this.#deps;
    const failed = events.map(({ eventId, attempts }) => {
      const delay = Math.min(firstDelay * growth ** attempts, longestDelay);
      return { eventId, attempts: attempts + 1, retryTs: clock.now() + delay };
    });
    await postponeMissed(database, roomNid, failed);
    const given = failed.filter(({ attempts }) => attempts >= maxAttempts).map(({ eventId }) => eventId);
    if (given.length === 0) return;
    log.info({ roomId, eventIds: given }, 'Nobody has what was said before some events of a room');
    await fetchOnlyOnRead(database, roomNid, given);
  }

  /** Counts a question. @returns how long the room has to rest if it has had its share for a day */
  #pauseOf(roomId: string): number | undefined {
    const now = this.#deps.clock.now();
    const before = this.#spent.get(roomId);
    const { since, answers } = before && now - before.since < day ? before : { since: now, answers: 0 };
    if (answers >= answersADay) return since + day - now;
    this.#spent.set(roomId, { since, answers: answers + 1 });
    return undefined;
  }
}
