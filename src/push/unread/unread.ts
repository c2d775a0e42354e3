import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import { LoadTogether } from '../../kernel/load-together.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { LastChanges } from '../../kernel/recent-changes.ts';
import type { StreamReader } from '../../kernel/streams/index.ts';
import { allReady, whenReady } from '../../kernel/when-ready.ts';
import type { ReadUpTo, Receipts } from '../../receipts/index.ts';
import type { RoomHead, RoomReader } from '../../room-engine/index.ts';
import type { NotifiedMember } from '../evaluation/member.ts';
import type { PushEvaluation } from '../evaluation/push-evaluation.ts';
import type { PushTables } from '../tables.ts';
import { Evaluation } from './evaluation.ts';
import { MarkList } from './mark-list.ts';
import { readTallies, type TallyOwner } from './store.ts';
import { nothingUnread, Tally, type UnreadCounts } from './tally.ts';
import { TallySaver } from './tally-saver.ts';

export interface UnreadDeps {
  readonly caches: CacheRegistry;
  readonly database: Database;
  readonly streams: StreamReader;
  readonly clock: Clock;
  readonly log: Logger;
  readonly engine: RoomReader;
  readonly receipts: Receipts;
  readonly evaluation: PushEvaluation;
  /** `push.enabled`: when false nothing is ever unread. */
  readonly enabled: boolean;
}

/** Maximum number of rooms for which the position of the last event is in memory. */
const roomsInMemory = 10_000;

/**
 * Counts the unread events of users in their rooms. Nothing is written when an event arrives, however many members its
 * room has: at a request, the rules of the user are evaluated on the new events, and the result is cached as a tally: the unread
 * events of one user in one room.
 */
export class Unread {
  readonly #deps: UnreadDeps;
  /** The position of the last event of each room, so that nothing is done for rooms without new events. */
  readonly #lastEvents: LastChanges;
  readonly #saver: TallySaver;
  readonly #tallies: Cache<string, Tally>;
  readonly #savedTallies: LoadTogether<TallyOwner, Tally>;
  /** By user and room (`keyOf`). */
  readonly #runningEvaluations = new Map<string, Promise<Tally>>();
  #evaluatedEvents = 0;

  constructor(deps: UnreadDeps) {
    this.#deps = deps;
    this.#lastEvents = new LastChanges(deps.streams.current, deps.caches, {
      name: 'newest_events_of_rooms',
      maxKeys: roomsInMemory,
    });
    deps.engine.stream.subscribe(({ roomId, onTimeline }, position) => {
      if (onTimeline) this.#lastEvents.set(roomId, position);
    });
    this.#saver = new TallySaver(deps);
    this.#savedTallies = new LoadTogether((owners) =>
      readTallies(deps.database.reader<PushTables>(), owners),
    );
    this.#tallies = deps.caches.create('unread_tallies', {
      maxBytes: 16 * MiB,
      sizeOf: ({ bytes }) => bytes,
    });
  }

  /**
   * Returns the unread counts of a user in a joined room at a position. Returns at once, without a query, if a
   * client of the user syncs the room regularly.
   * @param upTo a position that is not above `streams.current`
   */
  counts(userId: string, roomId: string, upTo: number): UnreadCounts | Promise<UnreadCounts> {
    const { engine, enabled } = this.#deps;
    if (!enabled) return nothingUnread;
    return whenReady(engine.heads.peek(roomId) ?? engine.heads.get(roomId), (head) =>
      head?.membership(userId) === 'join' ? this.#countsIn(head, userId, upTo) : nothingUnread,
    );
  }

  /** Returns the position of the newest event of a room, or a later position where it is not in memory. */
  newestEventOf(roomId: string): number {
    return this.#lastEvents.of(roomId);
  }

  /** Number of events that were evaluated, of all users and rooms. */
  get evaluatedEvents(): number {
    return this.#evaluatedEvents;
  }

  /** Saves the tallies that have changed much. */
  async stop(): Promise<void> {
    await Promise.allSettled(this.#runningEvaluations.values());
    await this.#saver.stop();
  }

  /** Whether a tally has all events up to a position, evaluated with the current rules and ignored users. */
  #isCurrent({ upTo: evaluatedUpTo }: Tally, userId: string, roomId: string, upTo: number): boolean {
    if (evaluatedUpTo < Math.min(upTo, this.#lastEvents.of(roomId))) return false;
    const changedAt = this.#deps.evaluation.members.settingsChangedAt(userId);
    return typeof changedAt === 'number' && evaluatedUpTo >= changedAt;
  }

  #countsIn(head: RoomHead, userId: string, upTo: number): UnreadCounts | Promise<UnreadCounts> {
    const { engine, receipts } = this.#deps;
    return whenReady(this.#tallyUpTo(userId, head, upTo), (tally) =>
      whenReady(receipts.readUpTo(userId, head.roomId), (read) =>
        whenReady(engine.retention.expiredBefore(head), (expiredBefore) => {
          tally.dropRead(read);
          tally.dropExpired(expiredBefore);
          return tally.counts(upTo);
        }),
      ),
    );
  }

  #tallyUpTo(userId: string, head: RoomHead, upTo: number): Tally | Promise<Tally> {
    const key = keyOf(userId, head.roomId);
    const tally = this.#tallies.get(key);
    if (tally && this.#isCurrent(tally, userId, head.roomId, upTo)) return tally;
    const runningEvaluation = this.#runningEvaluations.get(key);
    // The caller that started the running evaluation receives its error.
    if (runningEvaluation)
      return runningEvaluation.catch(() => undefined).then(() => this.#tallyUpTo(userId, head, upTo));
    const evaluated = this.#evaluate(key, tally, userId, head, upTo);
    if (!(evaluated instanceof Promise)) return evaluated;
    const running = evaluated.finally(() => this.#runningEvaluations.delete(key));
    this.#runningEvaluations.set(key, running);
    return running;
  }

  #evaluate(
    key: string,
    cached: Tally | undefined,
    userId: string,
    head: RoomHead,
    upTo: number,
  ): Tally | Promise<Tally> {
    const { engine, evaluation } = this.#deps;
    const { roomId } = head;
    const inputs = allReady<[savedTally: Tally | undefined, member: NotifiedMember, levels: unknown]>([
      cached ?? this.#savedTallies.get({ userId, roomId }),
      evaluation.members.of(head, userId),
      // Read together with the membership event; the evaluation of each event needs them.
      evaluation.events.levelsOf(head),
    ]);
    return whenReady(inputs, ([savedTally, member]) => {
      // After a change of the rules or ignored users, or when times are missing, all unread events are evaluated again.
      const isValid = savedTally && this.#hasTimes(savedTally) && savedTally.upTo >= member.settingsChangedAt;
      const tally = isValid ? savedTally : new Tally(0, new MarkList(engine.retention.isOn));
      if (tally.upTo >= upTo) {
        this.#tallies.set(key, tally);
        return tally;
      }
      const { read } = member;
      const newEvents = new Evaluation(engine, evaluation.events, member, tally.size > 0);
      return whenReady(newEvents.run(Math.max(tally.upTo, read.room), upTo), () => {
        this.#addEvaluation(key, tally, { userId, roomId, read }, newEvents, upTo);
        return tally;
      });
    });
  }

  /** Whether a tally has the times that expiry of messages needs: expiry may have been off when the tally was saved. */
  #hasTimes(tally: Tally): boolean {
    return tally.keepsTimes || !this.#deps.engine.retention.isOn;
  }

  #addEvaluation(
    key: string,
    tally: Tally,
    { userId, roomId, read }: { userId: string; roomId: string; read: ReadUpTo },
    evaluation: Evaluation,
    upTo: number,
  ): void {
    const { bytes } = tally;
    tally.add(evaluation, upTo, read);
    tally.unsaved += evaluation.count;
    this.#evaluatedEvents += evaluation.count;
    if (tally.bytes !== bytes || this.#tallies.peek(key) !== tally) this.#tallies.set(key, tally);
    this.#saver.queue(key, { userId, roomId, tally }, evaluation);
  }
}

const keyOf = (userId: string, roomId: string): string => `${userId}\0${roomId}`;
