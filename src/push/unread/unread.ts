import { LRUCache } from 'lru-cache';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { Streams } from '../../kernel/streams/index.ts';
import type { ReadUpTo, Receipts } from '../../receipts/index.ts';
import type { RoomEngine, RoomHead } from '../../rooms/index.ts';
import type { PushRules } from '../rules/push-rules.ts';
import type { PushTables } from '../tables.ts';
import { Evaluation } from './evaluation.ts';
import { LastEvents } from './last-events.ts';
import { PushEvents } from './push-events.ts';
import { readTally } from './store.ts';
import { nothingUnread, type Tally, type UnreadCounts } from './tally.ts';
import { TallySaver } from './tally-saver.ts';

/** Whom a user does not want to hear from; declared here, supplied at composition. */
export interface IgnoredUsers {
  of(userId: string): ReadonlySet<string> | Promise<ReadonlySet<string>>;
}

export interface UnreadDeps {
  readonly database: Database;
  readonly streams: Streams;
  readonly clock: Clock;
  readonly log: Logger;
  readonly engine: RoomEngine;
  readonly receipts: Receipts;
  readonly rules: PushRules;
  readonly ignored: IgnoredUsers;
  /** `push.enabled`: when false nothing is ever unread. */
  readonly enabled: boolean;
}

/** How much is kept in memory: a tally counts as ten marks, a mark is about 50 bytes. */
const [marksInMemory, marksPerTally] = [1_000_000, 10];

/**
 * How much of their rooms users have not read. Nothing is written when an event arrives, however many members its
 * room has: the rules of a user are tried on what is new when somebody asks, and the tally is kept.
 */
export class Unread {
  readonly #deps: UnreadDeps;
  readonly #pushEvents: PushEvents;
  readonly #lastEvents: LastEvents;
  readonly #saver: TallySaver;
  readonly #tallies: LRUCache<string, Tally>;
  readonly #evaluating = new Map<string, Promise<Tally>>();

  constructor(deps: UnreadDeps) {
    this.#deps = deps;
    this.#pushEvents = new PushEvents(deps.engine);
    this.#lastEvents = new LastEvents(deps.engine.stream, deps.streams.current);
    this.#saver = new TallySaver(deps);
    this.#tallies = new LRUCache({
      maxSize: marksInMemory,
      sizeCalculation: ({ marks }) => marksPerTally + marks.length,
    });
  }

  /**
   * What a user has not read of a room that they are in, as of a position.
   * @param upTo a position that is not above `streams.current`
   */
  async counts(userId: string, roomId: string, upTo: number): Promise<UnreadCounts> {
    const { engine, receipts, enabled } = this.#deps;
    if (!enabled) return nothingUnread;
    const head = await engine.heads.get(roomId);
    if (head?.membership(userId) !== 'join') return nothingUnread;
    const tally = await this.#tallyUpTo(userId, head, upTo);
    return countsOf(tally, await receipts.readUpTo(userId, roomId), upTo);
  }

  /** `counts` when that needs no look at any event; `undefined` otherwise. */
  peek(userId: string, roomId: string, upTo: number): UnreadCounts | undefined {
    const { engine, receipts, enabled } = this.#deps;
    if (!enabled) return nothingUnread;
    const tally = this.#tallies.get(keyOf(userId, roomId));
    const read = receipts.peekReadUpTo(userId, roomId);
    if (!tally || !read || !this.#isCurrent(tally, roomId, upTo)) return undefined;
    if (engine.heads.peek(roomId)?.membership(userId) !== 'join') return undefined;
    return countsOf(tally, read, upTo);
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
    const { database, engine, receipts, rules, ignored } = this.#deps;
    const { roomId } = head;
    const [tally, compiled, read, ignoredUsers, displayName] = await Promise.all([
      this.#tallies.get(key) ?? readTally(database.reader<PushTables>(), userId, roomId),
      rules.compiled(userId),
      receipts.readUpTo(userId, roomId),
      ignored.of(userId),
      this.#displayName(head, userId),
    ]);
    const evaluation = new Evaluation(engine, this.#pushEvents, {
      head,
      member: { userId, displayName },
      rules: compiled,
      read,
      ignored: ignoredUsers,
    });
    if (tally.upTo < upTo) {
      await evaluation.run(Math.max(tally.upTo, read.room), upTo);
      tally.add(evaluation, upTo);
      tally.unsaved += evaluation.count;
    }
    this.#tallies.delete(key); // a value that is set again would keep its old size
    this.#tallies.set(key, tally);
    this.#saver.changed(key, { userId, roomId, tally });
    return tally;
  }

  async #displayName(head: RoomHead, userId: string): Promise<string | undefined> {
    const entry = head.entry('m.room.member', userId);
    const content = entry && (await this.#deps.engine.events.get(entry.nid))?.event.content;
    const name = content?.['displayname'];
    return typeof name === 'string' ? name : undefined;
  }
}

function countsOf(tally: Tally, read: ReadUpTo, upTo: number): UnreadCounts {
  tally.drop(({ stream, threadId }) => stream <= read.thread(threadId));
  return tally.counts(upTo);
}

const keyOf = (userId: string, roomId: string): string => `${userId}\0${roomId}`;
