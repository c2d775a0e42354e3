import type { Clock } from '../../kernel/clock.ts';
import { encodePosition } from '../../kernel/streams/index.ts';
import { stateMapKey } from '../../protocol/index.ts';
import type { RoomEngine, RoomHead } from '../../room-engine/index.ts';
import { type Changes, RoomPart } from '../feeds/feed.ts';
import type { SyncSources } from '../sources.ts';
import type { DevicePart } from './device-part.ts';
import type { News, RoomNews } from './rooms/room-news.ts';
import { joinedRoomText, timelineText } from './rooms/room-text.ts';
import type { SentMembers } from './rooms/sent-members.ts';
import type { Subject } from './subject.ts';

export interface PromptAnswersDeps {
  readonly engine: RoomEngine;
  readonly clock: Clock;
  readonly news: RoomNews;
  readonly devicePart: DevicePart;
  readonly sources: Pick<SyncSources, 'receipts' | 'typing' | 'unread'>;
  readonly sentMembers: SentMembers;
  /** Rooms that no sync mentions. */
  readonly excludedRooms: ReadonlySet<string>;
}

/** Where an answer begins and ends on the streams. */
interface Range {
  readonly after: number;
  readonly upTo: number;
}

/** What of a room can be told at once. */
const promptParts = RoomPart.timeline | RoomPart.receipts | RoomPart.typing;

/** More rooms than these are not looked at in one go. */
const maxRooms = 20;

/**
 * Answers to those who follow their rooms closely: messages, receipts and typing in rooms that they have been in all
 * the while, which is most of what a busy server says. Everything that it takes is in memory, so nothing is waited for,
 * and what is the same for all members is made once. Whatever is not as simple as that is left to `Sync`, which says
 * the same of it at greater length.
 */
export class PromptAnswers {
  readonly #deps: PromptAnswersDeps;

  constructor(deps: PromptAnswersDeps) {
    this.#deps = deps;
  }

  /**
   * The answer as JSON text. A promise: what it takes is being prepared, ask again; it does not reject, for where that
   * fails `Sync` finds out why. `undefined`: this is not so simple, or there is nothing to say.
   * @param changes since the client's token, up to `upTo`
   */
  answer(subject: Subject, changes: Changes, range: Range): string | Promise<void> | undefined {
    const { rooms, user } = changes;
    if (user !== 0 || rooms.size === 0 || rooms.size > maxRooms) return undefined;
    const { devicePart } = this.#deps;
    const devices = devicePart.quietNow(subject.userId, subject.deviceId);
    if (devices === undefined) return undefined;
    const texts: string[] = [];
    for (const [roomId, parts] of rooms) {
      const text = this.#room(subject, roomId, parts, range);
      if (typeof text !== 'string') return text;
      texts.push(`${JSON.stringify(roomId)}:${text}`);
    }
    return `{"next_batch":"${encodePosition(range.upTo)}","rooms":{"join":{${texts.join(',')}}}${devices}}`;
  }

  #room(
    subject: Subject,
    roomId: string,
    parts: number,
    { after, upTo }: Range,
  ): string | Promise<void> | undefined {
    const { engine, clock, sources, excludedRooms } = this.#deps;
    const { userId, filter } = subject;
    if (parts & ~promptParts || excludedRooms.has(roomId) || !filter.room.passesRoom(roomId))
      return undefined;
    const room = engine.userRooms.peek(userId)?.get(roomId);
    const head = engine.heads.peek(roomId);
    if (!head || room?.membership !== 'join' || room.stream > after) return undefined;
    const news = parts & RoomPart.timeline ? this.#news(subject, head, { after, upTo }) : null;
    if (news === undefined || news instanceof Promise) return news;
    const ephemeral = this.#ephemeral(subject, roomId, parts, { after, upTo });
    if (!ephemeral || (!news && ephemeral.length === 0)) return undefined;
    const unread = sources.unread.peek(userId, roomId, upTo);
    if (!unread) return undefined;
    return joinedRoomText({
      timeline: news ? news.timeline(clock.now()) : timelineText(undefined, []),
      state: [],
      stateAfter: subject.stateAfter,
      ephemeral,
      accountData: [],
      unread,
      withThreads: filter.room.timeline.unreadThreadNotifications,
      summary: undefined,
    });
  }

  /** News that the subject is told in the same words as everybody, without any state. */
  #news(subject: Subject, head: RoomHead, { after, upTo }: Range): News | Promise<void> | undefined {
    const { userId, filter, timelineLimit } = subject;
    const { timeline } = filter.room;
    const isUsual = filter.format === 'client' && !filter.selectFields && !timeline.asksForRelations;
    const ignored = this.#deps.engine.ignored.peek(userId);
    if (!isUsual || !ignored || timeline.passesNothing || !timeline.passesRoom(head.roomId)) return undefined;
    const news = this.#deps.news.find(head, after, upTo);
    if (news === undefined || news instanceof Promise) return news;
    const { events, senders } = news;
    if (events.length > timelineLimit || senders.has(userId)) return undefined;
    for (const sender of senders) if (ignored.has(sender)) return undefined;
    for (const { event } of events) if (!timeline.passes(event)) return undefined;
    return this.#knowsSenders(subject, head, senders, { after, upTo }) ? news : undefined;
  }

  /** Whether a client that loads members lazily has been told of these. */
  #knowsSenders(
    subject: Subject,
    head: RoomHead,
    senders: ReadonlySet<string>,
    { after, upTo }: Range,
  ): boolean {
    const filter = subject.filter.room.state;
    if (!filter.lazyLoadMembers || !filter.passesRoom(head.roomId)) return true;
    if (filter.includeRedundantMembers) return false;
    const told = this.#deps.sentMembers.of(subject, head.roomId);
    for (const sender of senders) {
      const entry = head.state.get(stateMapKey('m.room.member', sender));
      if (!entry || entry.stream > upTo || !told.knows(sender, entry.nid, after)) return false;
    }
    return true;
  }

  /** `undefined`: not all of it is in memory. */
  #ephemeral(
    { userId, filter }: Subject,
    roomId: string,
    parts: number,
    { after, upTo }: Range,
  ): readonly string[] | undefined {
    const { receipts, typing } = this.#deps.sources;
    const wanted = filter.room.ephemeral;
    const texts: string[] = [];
    if (!(parts & (RoomPart.receipts | RoomPart.typing)) || !wanted.passesRoom(roomId)) return texts;
    if (parts & RoomPart.receipts && wanted.passesType('m.receipt')) {
      const contents = receipts.peekContentsSince(roomId, after, upTo, userId);
      if (!contents) return undefined;
      for (const content of contents) texts.push(JSON.stringify({ type: 'm.receipt', content }));
    }
    if (parts & RoomPart.typing && wanted.passesType('m.typing')) {
      const ignored = this.#deps.engine.ignored.peek(userId);
      if (!ignored) return undefined;
      const content = { user_ids: typing.inRoom(roomId, ignored) };
      texts.push(JSON.stringify({ type: 'm.typing', content }));
    }
    return texts;
  }
}
