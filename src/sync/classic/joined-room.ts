import type { AccountDataEntry } from '../../account-data/index.ts';
import type { Filter } from '../../filters/index.ts';
import { type JsonObject, roomSummaryOf, selectHeroes, stateKeyOf } from '../../protocol/index.ts';
import type { UnreadCounts } from '../../push/index.ts';
import type { RoomEngine, RoomHead, VisibleEvent } from '../../rooms/index.ts';
import { RoomPart } from '../feeds/feed.ts';
import type { SyncSources } from '../sources.ts';
import type { EventText } from './event-text.ts';
import { stateBefore, stateChangesOutside } from './room-state.ts';
import type { SentMembers } from './sent-members.ts';
import { readTimeline, type Timeline } from './timeline.ts';

/** Who syncs, and what they want. */
export interface Subject {
  readonly userId: string;
  readonly deviceId: string | undefined;
  readonly filter: Filter;
  /** Most events of each timeline. */
  readonly timelineLimit: number;
}

/** Which part of a room's history one answer is about. */
export interface RoomRange {
  /** `undefined`: the room is new to the client and it gets the whole state. */
  readonly after: number | undefined;
  readonly upTo: number;
  /** Bits of `RoomPart`: what may have changed. */
  readonly parts: number;
  readonly accountData: readonly Pick<AccountDataEntry, 'type' | 'content'>[];
  /** Send the whole state although the client knows the room. */
  readonly fullState: boolean;
}

const everyPart = RoomPart.timeline | RoomPart.receipts | RoomPart.typing | RoomPart.accountData;

/** Makes the entry of a joined room in the answer to a sync, as JSON text. */
export class JoinedRooms {
  readonly #engine: RoomEngine;
  readonly #text: EventText;
  readonly #sources: SyncSources;
  readonly #sentMembers: SentMembers;

  constructor(parts: {
    engine: RoomEngine;
    text: EventText;
    sources: SyncSources;
    sentMembers: SentMembers;
  }) {
    this.#engine = parts.engine;
    this.#text = parts.text;
    this.#sources = parts.sources;
    this.#sentMembers = parts.sentMembers;
  }

  /** @returns `undefined` when there is nothing to say */
  async render(head: RoomHead, subject: Subject, range: RoomRange): Promise<string | undefined> {
    const { filter, userId } = subject;
    const parts = range.after === undefined ? everyPart : range.parts;
    const timeline = await this.#timeline(head, subject, range, parts);
    const state = await this.#state(head, subject, range, timeline);
    const [ephemeral, timelineTexts, stateTexts, unread] = await Promise.all([
      this.#ephemeral(head.roomId, subject, range, parts),
      this.#text.render(timeline?.events ?? [], subject),
      this.#text.render(state, subject),
      this.#sources.unread.counts(userId, head.roomId, range.upTo),
    ]);
    const accountData = filter.room.accountData.passesRoom(head.roomId)
      ? range.accountData.filter(({ type }) => filter.room.accountData.passesType(type))
      : [];
    const isQuiet = timelineTexts.length + stateTexts.length + ephemeral.length + accountData.length === 0;
    if (isQuiet && !timeline?.limited && range.after !== undefined) return undefined;
    return joinedRoomText({
      timeline: timelineText(timeline, this.#pick(filter, timelineTexts)),
      state: this.#pick(filter, stateTexts),
      ephemeral,
      accountData: accountData.map(({ type, content }) => JSON.stringify({ type, content })),
      unread,
      withThreads: filter.room.timeline.unreadThreadNotifications,
      summary: await this.#summary(head, subject, range, timeline),
    });
  }

  async #timeline(
    head: RoomHead,
    subject: Subject,
    range: RoomRange,
    parts: number,
  ): Promise<Timeline | undefined> {
    if (!(parts & RoomPart.timeline)) return undefined;
    const { userId, filter } = subject;
    const wasJoinedThroughout = range.after !== undefined;
    return readTimeline(this.#engine, head, userId, filter, {
      after: range.after,
      upTo: range.upTo,
      limit: subject.timelineLimit,
      wasJoinedThroughout,
    });
  }

  /** The state events that the client needs besides those in the timeline. */
  async #state(
    head: RoomHead,
    subject: Subject,
    { after, upTo, fullState }: RoomRange,
    timeline: Timeline | undefined,
  ): Promise<VisibleEvent[]> {
    const { filter } = subject;
    if (!filter.room.state.passesRoom(head.roomId)) return [];
    const isWhole = after === undefined || fullState;
    const nids = new Set<number>();
    if (isWhole && timeline) {
      const state = await stateBefore(this.#engine, head, timeline);
      for (const [key, nid] of state) {
        if (!filter.room.state.lazyLoadMembers || !isMember(key) || key === memberKey(subject.userId))
          nids.add(nid);
      }
    } else if (isWhole) {
      for (const { nid } of head.state.values()) nids.add(nid);
    } else if (timeline) {
      for (const nid of await stateChangesOutside(this.#engine, head, timeline, after, upTo)) nids.add(nid);
    }
    const events = await this.#engine.events.getMany(nids);
    const chosen = filter.room.state.lazyLoadMembers
      ? await this.#withSenders(head, subject, events, timeline, isWhole)
      : [...events.values()];
    return chosen
      .filter(({ event }) => filter.room.state.passes(event))
      .map((stored) => ({ stored, membership: 'join' }));
  }

  /** Lazy loading: the members who speak in the timeline, unless the client has been told of them. */
  async #withSenders(
    head: RoomHead,
    subject: Subject,
    events: ReadonlyMap<number, VisibleEvent['stored']>,
    timeline: Timeline | undefined,
    isWhole: boolean,
  ) {
    const chosen = new Map(events);
    const inTimeline = new Set(timeline?.events.map(({ stored }) => stored.nid));
    const told = this.#sentMembers.of(subject, head.roomId);
    if (isWhole) told.clear();
    const senders = new Set(timeline?.events.map(({ stored }) => stored.event.sender));
    const missing: number[] = [];
    for (const sender of senders) {
      const nid = head.entry('m.room.member', sender)?.nid;
      if (nid === undefined || inTimeline.has(nid) || chosen.has(nid)) continue;
      const isKnown = told.get(sender) === nid && !subject.filter.room.state.includeRedundantMembers;
      if (!isKnown) missing.push(nid);
      told.set(sender, nid);
    }
    for (const [nid, stored] of await this.#engine.events.getMany(missing)) chosen.set(nid, stored);
    return [...chosen.values()];
  }

  async #ephemeral(
    roomId: string,
    { userId, filter }: Subject,
    range: RoomRange,
    parts: number,
  ): Promise<string[]> {
    const { receipts, typing } = this.#sources;
    const texts: string[] = [];
    if (!filter.room.ephemeral.passesRoom(roomId)) return texts;
    if (parts & RoomPart.receipts && filter.room.ephemeral.passesType('m.receipt')) {
      const contents =
        range.after === undefined
          ? await receipts.contentsAll(roomId, userId)
          : await receipts.contentsSince(roomId, range.after, range.upTo, userId);
      for (const content of contents) texts.push(JSON.stringify({ type: 'm.receipt', content }));
    }
    if (parts & RoomPart.typing && filter.room.ephemeral.passesType('m.typing')) {
      const userIds = typing.inRoom(roomId);
      if (userIds.length > 0 || range.after !== undefined) {
        texts.push(JSON.stringify({ type: 'm.typing', content: { user_ids: userIds } }));
      }
    }
    return texts;
  }

  /** Heroes and counts, when somebody came or went. */
  async #summary(
    head: RoomHead,
    { userId }: Subject,
    range: RoomRange,
    timeline: Timeline | undefined,
  ): Promise<JsonObject | undefined> {
    const hasChanged =
      range.after === undefined ||
      timeline?.limited === true ||
      timeline?.stateEvents.some(({ event }) => summaryTypes.has(event.type)) === true;
    if (!hasChanged && !range.fullState) return undefined;
    const [name, canonicalAlias] = await Promise.all([
      this.#stateText(head, 'm.room.name', 'name'),
      this.#stateText(head, 'm.room.canonical_alias', 'alias'),
    ]);
    return roomSummaryOf({
      name,
      canonicalAlias,
      heroes: selectHeroes(membersOf(head), userId),
      joinedCount: head.memberCount('join'),
      invitedCount: head.memberCount('invite'),
    });
  }

  /** A text in the content of an entry of the current state. */
  async #stateText(head: RoomHead, type: string, key: string): Promise<string | undefined> {
    const entry = head.entry(type, '');
    const stored = entry && (await this.#engine.events.get(entry.nid));
    const value = stored?.event.content[key];
    return typeof value === 'string' ? value : undefined;
  }

  #pick(filter: Filter, texts: readonly string[]): readonly string[] {
    const { selectFields } = filter;
    return selectFields ? texts.map((text) => JSON.stringify(selectFields(JSON.parse(text)))) : texts;
  }
}

const summaryTypes = new Set(['m.room.member', 'm.room.name', 'm.room.canonical_alias']);

const memberKey = (userId: string) => stateKeyOf('m.room.member', userId);

const memberPrefix = stateKeyOf('m.room.member', '');

const isMember = (key: string) => key.startsWith(memberPrefix);

function* membersOf(head: RoomHead) {
  for (const [userId, membership] of head.members) yield { userId, membership };
}

export function timelineText(timeline: Timeline | undefined, texts: readonly string[]): string {
  if (!timeline) return '{"events":[],"limited":false}';
  return `{"events":[${texts.join(',')}],"limited":${timeline.limited},"prev_batch":"${timeline.prevBatch}"}`;
}

function joinedRoomText(parts: {
  timeline: string;
  state: readonly string[];
  ephemeral: readonly string[];
  accountData: readonly string[];
  unread: UnreadCounts;
  withThreads: boolean;
  summary: JsonObject | undefined;
}): string {
  const { notification_count, highlight_count, threads } = parts.unread;
  const room = [notification_count, highlight_count];
  if (!parts.withThreads) {
    for (const thread of threads.values()) {
      room[0] = (room[0] ?? 0) + thread.notification_count;
      room[1] = (room[1] ?? 0) + thread.highlight_count;
    }
  }
  const threadText =
    parts.withThreads && threads.size > 0
      ? `,"unread_thread_notifications":${JSON.stringify(Object.fromEntries(threads))}`
      : '';
  return (
    `{"timeline":${parts.timeline},"state":{"events":[${parts.state.join(',')}]},` +
    `"ephemeral":{"events":[${parts.ephemeral.join(',')}]},` +
    `"account_data":{"events":[${parts.accountData.join(',')}]},` +
    `"unread_notifications":{"notification_count":${room[0]},"highlight_count":${room[1]}}${threadText}` +
    `${parts.summary ? `,"summary":${JSON.stringify(parts.summary)}` : ''}}`
  );
}
