import { TextBuilder } from '../../../kernel/http/index.ts';
import { allReady, whenReady } from '../../../kernel/when-ready.ts';
import { membershipOf, stateMapKey } from '../../../protocol/index.ts';
import type { RoomHead, RoomReader } from '../../../room-engine/index.ts';
import { RoomView } from '../../../rooms/index.ts';
import { type SourceList, timelineBit } from '../../sources/source-list.ts';
import { accountDataIn } from '../account-data.ts';
import type { Recipient, RoomRange } from '../recipient.ts';
import type { EventText } from './event-text.ts';
import {
  addFromAuthEvents,
  addNeeded,
  isNeededEntry,
  membersOf,
  neededMembers,
  recordSent,
} from './lazy-members.ts';
import { isPartialAt } from './partial-members.ts';
import type { PlainTimelines } from './plain-timelines.ts';
import { changesWithin, rewind, type StateNids, stateAt } from './room-state.ts';
import { mayChangeSummary, memberSummaryAt, summaryAt } from './room-summary.ts';
import { type EntryText, type JoinedRoomPieces, joinedRoomText, timelineText } from './room-text.ts';
import type { SentMembers } from './sent-members.ts';
import { readTimeline, type Timeline } from './timeline.ts';

export interface JoinedRoomsDeps {
  readonly engine: RoomReader;
  readonly text: EventText;
  readonly sources: SourceList;
  readonly sentMembers: SentMembers;
  readonly plainTimelines: PlainTimelines;
}

/** The timeline of a room's entry with the fields that depend on it. */
type RoomEvents = Pick<JoinedRoomPieces, 'timeline' | 'state' | 'summary'> & {
  /** Whether the room must be in the answer because of this data. */
  readonly hasNewData: boolean;
};

const noTexts: readonly string[] = [];

/** Number of state events that are in memory together while the text of a long state is made. */
const stateEventsAtOnce = 200;

const noEvents: RoomEvents = {
  timeline: timelineText(undefined, []),
  state: noTexts,
  summary: undefined,
  hasNewData: false,
};

/** Whether the client receives the whole state of the room. */
const needsWholeState = ({ after, fullState }: RoomRange) => after === undefined || fullState;

/** Makes the entries of joined rooms, as JSON text. */
export class JoinedRooms {
  readonly #deps: JoinedRoomsDeps;

  constructor(deps: JoinedRoomsDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the entry of a room as JSON text; `undefined` when there is no new data. Returns no promise when everything
   * is in memory, as it usually is for clients that sync often.
   */
  render(
    head: RoomHead,
    recipient: Recipient,
    range: RoomRange,
  ): EntryText | undefined | Promise<EntryText | undefined> {
    const pieces = allReady<[RoomEvents, readonly string[], readonly string[]]>([
      this.#events(head, recipient, range),
      this.#ephemeral(head.roomId, recipient, range),
      this.#counts(head.roomId, recipient, range.upTo),
    ]);
    return whenReady(pieces, ([events, ephemeral, counts]) => {
      const accountData = accountDataIn(recipient, head.roomId, range.accountData);
      const isQuiet = !events.hasNewData && ephemeral.length + accountData.length === 0;
      if (isQuiet && !needsWholeState(range)) return undefined;
      const { timeline, state, summary } = events;
      const { stateAfter } = recipient;
      return joinedRoomText({ timeline, state, stateAfter, ephemeral, accountData, counts, summary });
    });
  }

  #events(head: RoomHead, recipient: Recipient, range: RoomRange): RoomEvents | Promise<RoomEvents> {
    const { after, upTo, changedBits } = range;
    if (after === undefined || needsWholeState(range)) return this.#readEvents(head, recipient, range);
    if (!(changedBits & timelineBit)) return noEvents;
    const plain = this.#deps.plainTimelines.find(head, recipient, { after, upTo });
    return whenReady(plain, (timeline) =>
      timeline === undefined
        ? this.#readEvents(head, recipient, range)
        : { timeline, state: noTexts, summary: undefined, hasNewData: true },
    );
  }

  async #readEvents(head: RoomHead, recipient: Recipient, range: RoomRange): Promise<RoomEvents> {
    const { engine, text } = this.#deps;
    const timeline = await this.#timeline(head, recipient, range);
    const hasSummary = needsWholeState(range) || mayChangeSummary(timeline);
    const memberSummary = hasSummary
      ? await memberSummaryAt(engine, head, recipient.userId, range.upTo)
      : undefined;
    const summary = memberSummary && (await summaryAt(engine, head, memberSummary, range.upTo));
    const heroes = summary?.['m.heroes'] === undefined ? [] : memberSummary?.heroes;
    const stateNids = await this.#state(head, recipient, range, timeline, heroes ?? []);
    const [timelineTexts, state] = await Promise.all([
      text.render(timeline.events, recipient),
      this.#stateTexts(stateNids, recipient),
    ]);
    const hasState = state instanceof TextBuilder ? !state.isEmpty : state.length > 0;
    return {
      timeline: timelineText(timeline, timelineTexts),
      state,
      summary,
      hasNewData: (timeline.limited && recipient.timelineLimit > 0) || timelineTexts.length > 0 || hasState,
    };
  }

  /** Returns the texts of the state events that pass the filter: as a list, or as a builder when there are many events. */
  async #stateTexts(nids: readonly number[], recipient: Recipient): Promise<readonly string[] | TextBuilder> {
    if (nids.length <= stateEventsAtOnce) return this.#textsOf(nids, recipient);
    const builder = new TextBuilder();
    for (let start = 0; start < nids.length; start += stateEventsAtOnce) {
      const texts = await this.#textsOf(nids.slice(start, start + stateEventsAtOnce), recipient);
      for (const text of texts) builder.add(builder.isEmpty ? text : `,${text}`);
    }
    return builder;
  }

  async #textsOf(nids: readonly number[], recipient: Recipient): Promise<readonly string[]> {
    const { engine, text } = this.#deps;
    const filter = recipient.filter.room.state;
    const listed = engine.events.list(nids);
    const events = listed instanceof Promise ? await listed : listed;
    const wanted = events.filter(({ event }) => filter.passes(event));
    return text.render(
      wanted.map((stored) => ({ stored, membership: undefined })),
      recipient,
    );
  }

  async #timeline(
    head: RoomHead,
    recipient: Recipient,
    { after, upTo, rejoinedAfter }: RoomRange,
  ): Promise<Timeline> {
    const { engine, text } = this.#deps;
    const view = after === undefined ? await RoomView.open(engine, head, recipient.userId) : undefined;
    const { userId, timelineLimit: limit } = recipient;
    const lastMembershipEnd =
      rejoinedAfter === undefined ? undefined : await this.#lastMembershipEnd(head, userId, rejoinedAfter);
    const request = {
      userId,
      after: after ?? lastMembershipEnd,
      upTo,
      limit,
      view,
      showsCurrentState: view?.isJoined ?? false,
    };
    const timeline = await readTimeline(
      { engine, relations: text.relations },
      head,
      recipient.filter,
      request,
    );
    return rejoinedAfter === undefined ? timeline : { ...timeline, limited: true };
  }

  /**
   * Returns the stream position where the timeline begins in a room that the user has joined again: the end of the user's
   * last membership, but at most `since`, the position of the client's last sync. Returns `undefined` when the user was
   * never joined before. If the timeline began earlier, the state before it would be older than the state that the client
   * has: clients skip the events that they have, and would mistake this older state for the current state.
   */
  async #lastMembershipEnd(head: RoomHead, userId: string, since: number): Promise<number | undefined> {
    const { engine } = this.#deps;
    const changes = await engine.stateHistory(head.roomNid, stateMapKey('m.room.member', userId));
    const joined = changes.map(({ event }) => membershipOf(event?.event.content) === 'join');
    const end = changes.findLast((_, index) => !joined[index] && joined[index - 1]);
    return end && Math.min(end.stream, since);
  }

  /**
   * Returns the nids of the state events that the client needs besides the timeline; none if its filter excludes the
   * state of the room.
   */
  async #state(
    head: RoomHead,
    recipient: Recipient,
    range: RoomRange,
    timeline: Timeline,
    heroes: readonly string[],
  ): Promise<readonly number[]> {
    const { engine, sentMembers } = this.#deps;
    const filter = recipient.filter.room.state;
    if (!filter.passesRoom(head.roomId)) return [];
    const { after, upTo, fullState } = range;
    const sent = filter.lazyLoadMembers ? sentMembers.of(recipient, head.roomId) : undefined;
    const needed = neededMembers(timeline, heroes);
    let state: StateNids;
    if (after === undefined || fullState) {
      if (sent && after !== undefined) {
        // The client must receive all membership changes, whether its timeline needs them or not.
        for (const member of membersOf(await this.#changes(head, recipient, { after, upTo }, timeline)))
          needed.add(member);
      }
      const isWanted = sent && ((key: string) => isNeededEntry(key, recipient.userId, needed));
      const wholeState = stateAt(engine, head, upTo, isWanted);
      state = wholeState instanceof Promise ? await wholeState : wholeState;
      if (!recipient.stateAfter) rewind(state, timeline);
      sent?.clear();
    } else {
      state = await this.#changes(head, recipient, { after, upTo }, timeline);
      if (sent) await addNeeded(engine, head, state, { recipient, timeline, needed, sent, after, upTo });
    }
    if (sent && isPartialAt(head, upTo)) {
      await addFromAuthEvents(engine, head, state, { recipient, timeline, needed, sent, after, upTo });
    }
    if (sent) recordSent(sent, state, timeline, upTo);
    return [...state.values()];
  }

  async #changes(
    head: RoomHead,
    { stateAfter }: Recipient,
    { after, upTo }: { after: number; upTo: number },
    timeline: Timeline,
  ): Promise<StateNids> {
    const showsState = timeline.events.some(({ stored }) => stored.event.stateKey !== undefined);
    if (!timeline.hidesState && !(stateAfter && showsState)) return new Map();
    const { changes, unknownNids } = await changesWithin(this.#deps.engine, head, after, upTo);
    if (!stateAfter) rewind(changes, timeline, unknownNids);
    return changes;
  }

  #ephemeral(
    roomId: string,
    { userId, filter }: Recipient,
    { after, upTo, changedBits, initialEphemeral }: RoomRange,
  ): readonly string[] | Promise<readonly string[]> {
    const { ephemeral, ephemeralBits } = this.#deps.sources;
    const wanted = filter.room.ephemeral;
    const isQuiet = after !== undefined && !(changedBits & ephemeralBits);
    if (isQuiet || !wanted.passesRoom(roomId)) return noTexts;
    const texts: (readonly string[] | Promise<readonly string[]>)[] = [];
    for (const { bit, section } of ephemeral) {
      if (!wanted.passesType(section.type)) continue;
      if (after === undefined) texts.push(initialEphemeral.get(section.type) ?? noTexts);
      else if (changedBits & bit) texts.push(section.since(userId, roomId, { after, upTo }));
    }
    return whenReady(allReady<readonly (readonly string[])[]>(texts), (all) =>
      all.length === 1 ? all[0]! : all.flat(),
    );
  }

  #counts(roomId: string, { userId, filter }: Recipient, upTo: number) {
    const { threadCountsField } = filter.room.timeline;
    const { roomCounts } = this.#deps.sources;
    return allReady<readonly string[]>(
      roomCounts.map(({ section }) => section.fieldsText(userId, roomId, upTo, threadCountsField)),
    );
  }
}
