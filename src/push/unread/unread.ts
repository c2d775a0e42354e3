import { LRUCache } from 'lru-cache';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { LastChanges } from '../../kernel/recent-changes.ts';
import type { StreamReader } from '../../kernel/streams/index.ts';
import type { ReadUpTo, Receipts } from '../../receipts/index.ts';
import type { RoomEngine, RoomHead, StoredEvent } from '../../room-engine/index.ts';
import type { PushRules } from '../rules/push-rules.ts';
import type { PushTables } from '../tables.ts';
import { Evaluation, type Reader } from './evaluation.ts';
import { PushEvents } from './push-events.ts';
import { readTally } from './store.ts';
import { nothingUnread, type Tally, type UnreadCounts } from './tally.ts';
import { TallySaver } from './tally-saver.ts';

/** Whom a user does not want to hear from; declared here, supplied at composition. */
export interface IgnoredUsers {
  of(userId: string): Promise<ReadonlySet<string>>;
  /** `of` when it is in memory. */
  peek(userId: string): ReadonlySet<string> | undefined;
}

/** The threads that users follow, by the events with which they begin; declared here, supplied at composition. */
export interface FollowedThreads {
  in(userId: string, roomId: string): Promise<ReadonlySet<string>>;
  /** `in` when it is in memory. */
  peek(userId: string, roomId: string): ReadonlySet<string> | undefined;
}

export interface UnreadDeps {
  readonly database: Database;
  readonly streams: StreamReader;
  readonly clock: Clock;
  readonly log: Logger;
  readonly engine: RoomEngine;
  readonly receipts: Receipts;
  readonly rules: PushRules;
  readonly ignored: IgnoredUsers;
  readonly threads: FollowedThreads;
  /** `push.enabled`: when false nothing is ever unread. */
  readonly enabled: boolean;
}

/** How much is kept in memory: a tally counts as ten marks, a mark is about 50 bytes. */
const [marksInMemory, marksPerTally] = [1_000_000, 10];

/** Rooms whose last event's position is remembered. */
const roomsRemembered = 50_000;

/**
 * How much of their rooms users have not read. Nothing is written when an event arrives, however many members its
 * room has: the rules of a user are tried on what is new when somebody asks, and the tally is kept.
 */
export class Unread {
  readonly #deps: UnreadDeps;
  readonly #pushEvents: PushEvents;
  /** Where the last event of each room is, so that nothing is done for rooms without new events. */
  readonly #lastEvents: LastChanges;
  readonly #saver: TallySaver;
  readonly #tallies: LRUCache<string, Tally>;
  readonly #evaluating = new Map<string, Promise<Tally>>();

  constructor(deps: UnreadDeps) {
    this.#deps = deps;
    this.#pushEvents = new PushEvents(deps.engine);
    this.#lastEvents = new LastChanges(deps.streams.current, roomsRemembered);
    deps.engine.stream.subscribe(({ roomId, onTimeline }, position) => {
      if (onTimeline) this.#lastEvents.set(roomId, position);
    });
    this.#saver = new TallySaver(deps);
    this.#tallies = new LRUCache({
      maxSize: marksInMemory,
      sizeCalculation: ({ marks }) => marksPerTally + marks.length,
    });
  }

  /**
   * What a user has not read of a room that they are in, as of a position. Costs no query for those who follow.
   * @param upTo a position that is not above `streams.current`
   */
  async counts(userId: string, roomId: string, upTo: number): Promise<UnreadCounts> {
    const known = this.peek(userId, roomId, upTo);
    if (known) return known;
    const { engine, receipts } = this.#deps;
    const head = await engine.heads.get(roomId);
    if (head?.membership(userId) !== 'join') return nothingUnread;
    const tally = await this.#tallyUpTo(userId, head, upTo);
    tally.drop(await receipts.readUpTo(userId, roomId));
    return tally.counts(upTo);
  }

  /** `counts` when everything that they take is in memory; `undefined` otherwise. */
  peek(userId: string, roomId: string, upTo: number): UnreadCounts | undefined {
    const { engine, receipts, enabled } = this.#deps;
    if (!enabled) return nothingUnread;
    const key = keyOf(userId, roomId);
    const tally = this.#tallies.get(key);
    const read = receipts.peekReadUpTo(userId, roomId);
    const head = engine.heads.peek(roomId);
    if (!tally || !read || head?.membership(userId) !== 'join') return undefined;
    if (!this.#isCurrent(tally, roomId, upTo)) {
      if (this.#evaluating.has(key) || !this.#evaluateNow(tally, userId, head, read, upTo)) return undefined;
    }
    tally.drop(read);
    return tally.counts(upTo);
  }

  /** Looks at an event once for all who will ask what is unread: `peek` wants that done. */
  async prepare(head: RoomHead, stored: StoredEvent): Promise<void> {
    if (this.#deps.enabled) await this.#pushEvents.get(head, stored);
  }

  /** Whether `prepare` was called for the event, not long ago. */
  isPrepared(stored: StoredEvent): boolean {
    return !this.#deps.enabled || this.#pushEvents.peek(stored) !== undefined;
  }

  /** Saves what is worth it. */
  async stop(): Promise<void> {
    await Promise.allSettled(this.#evaluating.values());
    await this.#saver.stop();
  }

  #isCurrent(tally: Tally, roomId: string, upTo: number): boolean {
    return tally.upTo >= Math.min(upTo, this.#lastEvents.of(roomId));
  }

  async #tallyUpTo(userId: string, head: RoomHead, upTo: number): Promise<Tally> {
    const key = keyOf(userId, head.roomId);
    for (;;) {
      const tally = this.#tallies.get(key);
      if (tally && this.#isCurrent(tally, head.roomId, upTo)) return tally;
      const other = this.#evaluating.get(key);
      if (!other) {
        const own = this.#evaluate(key, userId, head, upTo).finally(() => this.#evaluating.delete(key));
        this.#evaluating.set(key, own);
        return own;
      }
      await other.catch(() => undefined); // whoever asked for it hears of the error
    }
  }

  async #evaluate(key: string, userId: string, head: RoomHead, upTo: number): Promise<Tally> {
    const { database, receipts, rules, ignored, threads } = this.#deps;
    const { roomId } = head;
    const [tally, compiled, read, ignoredUsers, displayName, followedThreads] = await Promise.all([
      this.#tallies.get(key) ?? readTally(database.reader<PushTables>(), userId, roomId),
      rules.compiled(userId),
      receipts.readUpTo(userId, roomId),
      ignored.of(userId),
      this.#displayName(head, userId),
      threads.in(userId, roomId),
    ]);
    const member = { userId, displayName, followedThreads };
    const evaluation = this.#evaluation({ head, member, rules: compiled, read, ignored: ignoredUsers });
    if (tally.upTo < upTo) {
      await evaluation.run(Math.max(tally.upTo, read.room), upTo);
      this.#take(tally, { userId, roomId, read }, evaluation, upTo);
    } else this.#tallies.set(key, tally);
    return tally;
  }

  /** `#evaluate` for what is in memory. @returns whether it was possible */
  #evaluateNow(tally: Tally, userId: string, head: RoomHead, read: ReadUpTo, upTo: number): boolean {
    const { engine, rules, ignored, threads } = this.#deps;
    const compiled = rules.peekCompiled(userId);
    const ignoredUsers = ignored.peek(userId);
    const followedThreads = threads.peek(userId, head.roomId);
    const entry = head.entry('m.room.member', userId);
    const own = entry && engine.events.peek(entry.nid);
    if (!compiled || !ignoredUsers || !followedThreads || !own) return false;
    const member = { userId, displayName: displayNameIn(own), followedThreads };
    const evaluation = this.#evaluation({ head, member, rules: compiled, read, ignored: ignoredUsers });
    if (!evaluation.runNow(Math.max(tally.upTo, read.room), upTo)) return false;
    this.#take(tally, { userId, roomId: head.roomId, read }, evaluation, upTo);
    return true;
  }

  #evaluation(reader: Reader): Evaluation {
    return new Evaluation(this.#deps.engine, this.#pushEvents, reader);
  }

  #take(
    tally: Tally,
    { userId, roomId, read }: { userId: string; roomId: string; read: ReadUpTo },
    evaluation: Evaluation,
    upTo: number,
  ): void {
    const key = keyOf(userId, roomId);
    tally.add(evaluation, upTo, read);
    tally.unsaved += evaluation.count;
    this.#tallies.delete(key); // a value that is set again would keep its old size
    this.#tallies.set(key, tally);
    this.#saver.changed(key, { userId, roomId, tally });
  }

  async #displayName(head: RoomHead, userId: string): Promise<string | undefined> {
    const entry = head.entry('m.room.member', userId);
    const own = entry && (await this.#deps.engine.events.get(entry.nid));
    return own && displayNameIn(own);
  }
}

function displayNameIn({ event }: StoredEvent): string | undefined {
  const name = event.content['displayname'];
  return typeof name === 'string' ? name : undefined;
}

const keyOf = (userId: string, roomId: string): string => `${userId}\0${roomId}`;
