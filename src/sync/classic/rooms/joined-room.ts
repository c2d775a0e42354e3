import { membershipOf, stateMapKey } from '../../../protocol/index.ts';
import type { RoomEngine, RoomHead, StoredEvent } from '../../../room-engine/index.ts';
import type { VisibleEvent } from '../../../rooms/index.ts';
import { RoomView } from '../../../rooms/index.ts';
import { RoomPart } from '../../feeds/feed.ts';
import type { SyncSources } from '../../sources.ts';
import { everyPart, type RoomRange, type Subject } from '../subject.ts';
import type { EventText } from './event-text.ts';
import { addNeeded, keepNeeded, membersOf, neededMembers, remember } from './lazy-members.ts';
import { changesWithin, rewind, type StateNids, stateAt } from './room-state.ts';
import { mayChangeSummary, peopleAt, summaryAt } from './room-summary.ts';
import { joinedRoomText, timelineText } from './room-text.ts';
import type { SentMembers } from './sent-members.ts';
import { readTimeline, type Timeline } from './timeline.ts';

export interface JoinedRoomsDeps {
  readonly engine: RoomEngine;
  readonly text: EventText;
  readonly sources: SyncSources;
  readonly sentMembers: SentMembers;
}

/** Makes the entry of a joined room in the answer to a sync, as JSON text. */
export class JoinedRooms {
  readonly #deps: JoinedRoomsDeps;

  constructor(deps: JoinedRoomsDeps) {
    this.#deps = deps;
  }

  /** @returns `undefined` when there is nothing to say */
  async render(head: RoomHead, subject: Subject, range: RoomRange): Promise<string | undefined> {
    const { filter, userId } = subject;
    const { engine, text, sources } = this.#deps;
    const isWhole = range.after === undefined || range.fullState;
    const timeline = await this.#timeline(head, subject, range, isWhole);
    const people =
      isWhole || mayChangeSummary(timeline) ? await peopleAt(engine, head, userId, range.upTo) : undefined;
    const state = timeline ? await this.#state(head, subject, range, timeline, people?.heroes ?? []) : [];
    const [ephemeral, timelineTexts, stateTexts, unread] = await Promise.all([
      this.#ephemeral(head.roomId, subject, range),
      text.render(timeline?.events ?? [], subject),
      text.render(state, subject),
      sources.unread.counts(userId, head.roomId, range.upTo),
    ]);
    const accountData = filter.room.accountData.passesRoom(head.roomId)
      ? range.accountData.filter(({ type }) => filter.room.accountData.passesType(type))
      : [];
    const isQuiet = timelineTexts.length + stateTexts.length + ephemeral.length + accountData.length === 0;
    if (isQuiet && !timeline?.limited && !isWhole) return undefined;
    return joinedRoomText({
      timeline: timelineText(timeline, timelineTexts),
      state: stateTexts,
      stateAfter: subject.stateAfter,
      ephemeral,
      accountData: accountData.map(({ type, content }) => JSON.stringify({ type, content })),
      unread,
      withThreads: filter.room.timeline.unreadThreadNotifications,
      summary: people && (await summaryAt(engine, head, people, range.upTo)),
    });
  }

  async #timeline(
    head: RoomHead,
    subject: Subject,
    { after, upTo, parts, returnedAfter }: RoomRange,
    isWhole: boolean,
  ): Promise<Timeline | undefined> {
    if (!isWhole && !(parts & RoomPart.timeline)) return undefined;
    const { engine, text } = this.#deps;
    const view = after === undefined ? await RoomView.open(engine, head, subject.userId) : undefined;
    const { userId, timelineLimit: limit } = subject;
    const lastSeen =
      returnedAfter === undefined ? undefined : await this.#lastSeen(head, userId, returnedAfter);
    const request = { userId, after: after ?? lastSeen, upTo, limit, view };
    const timeline = await readTimeline({ engine, relations: text.relations }, head, subject.filter, request);
    return returnedAfter === undefined ? timeline : { ...timeline, limited: true };
  }

  /**
   * Where the last stay of a user in the room ended for a client that has synced up to `since`; `undefined` when there
   * was none. A timeline that began before that would come with an older state than the client has already: clients leave
   * out the events that they have, and would take that state for the newest.
   */
  async #lastSeen(head: RoomHead, userId: string, since: number): Promise<number | undefined> {
    const { engine } = this.#deps;
    const changes = await engine.stateHistory(head.roomNid, stateMapKey('m.room.member', userId));
    const stays = changes.map(({ event }) => membershipOf(event?.event.content) === 'join');
    const end = changes.findLast((_, index) => !stays[index] && stays[index - 1]);
    return end && Math.min(end.stream, since);
  }

  /** The state events that the client needs besides those in the timeline. */
  async #state(
    head: RoomHead,
    subject: Subject,
    range: RoomRange,
    timeline: Timeline,
    heroes: readonly string[],
  ): Promise<VisibleEvent[]> {
    const { engine, sentMembers } = this.#deps;
    const filter = subject.filter.room.state;
    if (!filter.passesRoom(head.roomId)) return [];
    const { after, upTo, fullState } = range;
    const told = filter.lazyLoadMembers ? sentMembers.of(subject, head.roomId) : undefined;
    const needed = neededMembers(timeline, heroes);
    let state: StateNids;
    if (after === undefined || fullState) {
      state = await stateAt(engine, head, upTo);
      if (!subject.stateAfter) rewind(state, timeline);
      if (told && after !== undefined) {
        // Of those who came, left or changed meanwhile the client has to hear, whether it needs them or not.
        for (const member of membersOf(await this.#changes(head, subject, { after, upTo }, timeline)))
          needed.add(member);
      }
      if (told) keepNeeded(state, subject.userId, needed);
      told?.clear();
    } else {
      state = await this.#changes(head, subject, { after, upTo }, timeline);
      if (told) await addNeeded(engine, head, state, { subject, timeline, needed, told, after, upTo });
    }
    if (told) remember(told, state, timeline, upTo);
    const events = await engine.events.getMany(state.values());
    return inOrder(state, events)
      .filter(({ event }) => filter.passes(event))
      .map((stored) => ({ stored, membership: undefined }));
  }

  async #changes(
    head: RoomHead,
    { stateAfter }: Subject,
    { after, upTo }: { after: number; upTo: number },
    timeline: Timeline,
  ): Promise<StateNids> {
    const showsState = timeline.events.some(({ stored }) => stored.event.stateKey !== undefined);
    if (!timeline.hidesState && !(stateAfter && showsState)) return new Map();
    const { changes, news } = await changesWithin(this.#deps.engine, head, after, upTo);
    if (!stateAfter) rewind(changes, timeline, news);
    return changes;
  }

  async #ephemeral(roomId: string, { userId, filter }: Subject, range: RoomRange): Promise<string[]> {
    const { receipts, typing } = this.#deps.sources;
    const texts: string[] = [];
    const parts = range.after === undefined ? everyPart : range.parts;
    if (!filter.room.ephemeral.passesRoom(roomId)) return texts;
    if (parts & RoomPart.receipts && filter.room.ephemeral.passesType('m.receipt')) {
      const contents =
        range.after === undefined
          ? range.receipts
          : await receipts.contentsSince(roomId, range.after, range.upTo, userId);
      for (const content of contents) texts.push(JSON.stringify({ type: 'm.receipt', content }));
    }
    if (parts & RoomPart.typing && filter.room.ephemeral.passesType('m.typing')) {
      const userIds = typing.inRoom(roomId, await this.#deps.engine.ignored.of(userId));
      if (userIds.length > 0 || range.after !== undefined) {
        texts.push(JSON.stringify({ type: 'm.typing', content: { user_ids: userIds } }));
      }
    }
    return texts;
  }
}

/** The events of a state, each once, in the order of its entries. */
export function inOrder(state: StateNids, events: ReadonlyMap<number, StoredEvent>): StoredEvent[] {
  return [...state.values()].map((nid) => events.get(nid)).filter((stored) => stored !== undefined);
}
