import { type StrippedState, stateMapKey, strippedState } from '../../../protocol/index.ts';
import {
  type PrejoinStateKeys,
  type RoomHead,
  type RoomReader,
  type StoredEvent,
  type UserRoom,
  visibleContent,
} from '../../../room-engine/index.ts';
import { RoomView, type VisibleEvent } from '../../../rooms/index.ts';
import type { LeftRange, Recipient } from '../recipient.ts';
import type { EventText } from './event-text.ts';
import { neededMembers, removeUnneeded } from './lazy-members.ts';
import { changesWithin, nidAt, rewind, type StateNids, stateOfGroup } from './room-state.ts';
import { accountDataText, stateText, timelineText } from './room-text.ts';
import { readTimeline, type Timeline } from './timeline.ts';

/** Makes the entries of rooms that the user is not joined to: invited, knocking, left or banned. */
export class UnjoinedRooms {
  readonly #engine: RoomReader;
  readonly #text: EventText;
  /** The state that users see before they join (`room_prejoin_state`). */
  readonly #prejoinStateKeys: PrejoinStateKeys;

  constructor(engine: RoomReader, text: EventText, prejoinStateKeys: PrejoinStateKeys) {
    this.#engine = engine;
    this.#text = text;
    this.#prejoinStateKeys = prejoinStateKeys;
  }

  /** Returns the entry of a room that the user is invited to or knocks on: stripped state. */
  async prejoin(head: RoomHead, room: UserRoom): Promise<string> {
    const section = room.membership === 'invite' ? 'invite_state' : 'knock_state';
    return `{"${section}":{"events":[${(await this.strippedEvents(head, room)).join(',')}]}}`;
  }

  /**
   * Returns the stripped state that the user sees before joining, as JSON texts, with the user's own membership last.
   */
  async strippedEvents(head: RoomHead, room: UserRoom): Promise<string[]> {
    const membershipEvent = await this.#engine.events.get(room.eventNid);
    const userId = membershipEvent?.event.stateKey ?? '';
    const stripped = await this.#engine.strippedState(userId, room);
    const events = stripped ?? (await this.#prejoinState(head, room, membershipEvent)).map(asStripped);
    const otherEvents = events.filter(
      ({ type, state_key }) => type !== 'm.room.member' || state_key !== userId,
    );
    return [...otherEvents, ...(membershipEvent ? [withTime(membershipEvent)] : [])].map((event) =>
      JSON.stringify(event),
    );
  }

  async #prejoinState(
    head: RoomHead,
    room: UserRoom,
    membershipEvent: StoredEvent | undefined,
  ): Promise<StoredEvent[]> {
    const nids =
      room.membership === 'knock'
        ? await this.#stateBefore(room)
        : this.#stateNow(head, membershipEvent?.event.sender);
    return [...(await this.#engine.events.getMany(nids)).values()];
  }

  /**
   * Returns the nids of the current prejoin state, and of the inviter's membership with the inviter's name and avatar.
   */
  #stateNow(head: RoomHead, inviter = ''): number[] {
    const keys = new Set([
      ...this.#prejoinStateKeys.select(head.state),
      stateMapKey('m.room.member', inviter),
    ]);
    return [...keys].map((key) => head.state.get(key)?.nid).filter((nid) => nid !== undefined);
  }

  /**
   * Returns the nids of the prejoin state when the user knocked: only invited and joined users may see later changes.
   */
  async #stateBefore({ eventNid }: UserRoom): Promise<readonly number[]> {
    const { events, groups, stateKeys } = this.#engine;
    const group = (await events.get(eventNid))?.stateBefore;
    if (group === undefined) return [];
    if (!this.#prejoinStateKeys.hasOnlySingleEntries) {
      const wholeState = await stateOfGroup(this.#engine, group);
      return this.#prejoinStateKeys.select(wholeState).map((key) => wholeState.get(key) ?? 0);
    }
    const keys = await Promise.all(this.#prejoinStateKeys.single.map((key) => stateKeys.find(key)));
    const storedKeys = keys.filter((key) => key !== undefined);
    const state = (await groups.entries([group], storedKeys)).get(group);
    return [...(state?.values() ?? [])];
  }

  /** Returns the entry of a room that the user has left or was banned from, up to the leave or ban. */
  async left(head: RoomHead, room: UserRoom, recipient: Recipient, range: LeftRange): Promise<string> {
    const view = await RoomView.open(this.#engine, head, recipient.userId);
    const leaveEvent = await this.#newLeave(room, recipient, range.after);
    const newTimeline = await this.#timeline(head, room, recipient, { after: range.after, view, leaveEvent });
    // The client does not have the history before `range.after`.
    const limited = newTimeline.limited || (!room.forgotten && hasJoinedAndLeft(view, range.after));
    const timeline = { ...newTimeline, limited };
    const state: StateNids = room.forgotten
      ? new Map()
      : await this.#state(head, view, recipient, timeline, range);
    const isShown = timeline.events.some(({ stored }) => stored.nid === leaveEvent?.nid);
    if (leaveEvent && !isShown && recipient.filter.room.state.passesRoom(head.roomId))
      state.set(stateMapKey('m.room.member', recipient.userId), leaveEvent.nid);
    const stateEvents = (await this.#engine.events.list([...state.values()]))
      .filter(({ event }) => recipient.filter.room.state.passes(event))
      .map((stored) => ({ stored, membership: undefined }));
    const [timelineTexts, stateTexts] = await Promise.all([
      this.#text.render(timeline.events, recipient),
      this.#text.render(stateEvents, recipient),
    ]);
    return (
      `{"timeline":${timelineText(timeline, timelineTexts)},${stateText(stateTexts, recipient.stateAfter)},` +
      `${accountDataText(room.forgotten ? [] : range.accountData)}}`
    );
  }

  /** Returns the event that ended the user's membership, if the client does not know it yet. */
  async #newLeave(
    room: UserRoom,
    { userId }: Recipient,
    after: number | undefined,
  ): Promise<StoredEvent | undefined> {
    if (after !== undefined && room.stream <= after) return undefined;
    const leaveEvent = await this.#engine.events.get(room.eventNid);
    return leaveEvent && isOwnMembership(leaveEvent, userId) ? leaveEvent : undefined;
  }

  /**
   * Returns the timeline with the user's leave event at its end, even if the user may not see other events; without the
   * leave event when the filter excludes it or the client wants no timeline.
   */
  async #timeline(
    head: RoomHead,
    room: UserRoom,
    { userId, filter, timelineLimit }: Recipient,
    {
      after,
      view,
      leaveEvent,
    }: { after: number | undefined; view: RoomView; leaveEvent: StoredEvent | undefined },
  ): Promise<Timeline> {
    // A user who was never joined may read the room only if it is world-readable.
    const mayRead = !room.forgotten && (view.hasBeenJoined || (await view.isWorldReadable()));
    const read = (limit: number) =>
      readTimeline({ engine: this.#engine, relations: this.#text.relations }, head, filter, {
        userId,
        after,
        upTo: room.stream,
        limit,
        view,
      });
    const timeline = await read(mayRead ? timelineLimit : 0);
    if (
      !leaveEvent ||
      timelineLimit === 0 ||
      timeline.events.some(({ stored }) => stored.nid === leaveEvent.nid)
    )
      return timeline;
    const { timeline: wanted } = filter.room;
    if (!wanted.passesRoom(head.roomId) || !wanted.passes(leaveEvent.event)) return timeline;
    const shown: VisibleEvent = { stored: leaveEvent, membership: room.membership };
    const earlier = timeline.events.length < timelineLimit ? timeline : await read(timelineLimit - 1);
    return { ...earlier, events: [...earlier.events, shown] };
  }

  /**
   * Returns the state up to the end of the user's membership; empty for users who were never joined and, without
   * `fullState`, for users who left before `after`.
   */
  async #state(
    head: RoomHead,
    view: RoomView,
    { userId, filter, stateAfter }: Recipient,
    timeline: Timeline,
    { after, fullState }: LeftRange,
  ): Promise<StateNids> {
    const { lastLeave } = view;
    if (!lastLeave || !filter.room.state.passesRoom(head.roomId)) return new Map();
    const since = fullState ? undefined : after;
    if (since !== undefined && lastLeave.stream <= since) return new Map();
    const wasJoined = since !== undefined && view.membershipAt(since) === 'join';
    const { changes: state, unknownNids } = wasJoined
      ? await changesWithin(this.#engine, head, since, lastLeave.stream)
      : { changes: await stateOfGroup(this.#engine, lastLeave.event?.stateGroup), unknownNids: undefined };
    if (!stateAfter) rewind(state, timeline, unknownNids);
    if (!filter.room.state.lazyLoadMembers) return state;
    const needed = neededMembers(timeline, []);
    if (!wasJoined) removeUnneeded(state, userId, needed);
    else await this.#addSenders(head, state, needed, timeline, lastLeave.stream);
    return state;
  }

  /**
   * Adds the memberships of timeline senders, unless `state` contains a change of the membership or the timeline shows
   * it.
   */
  async #addSenders(
    head: RoomHead,
    state: StateNids,
    senders: ReadonlySet<string>,
    { events }: Timeline,
    position: number,
  ): Promise<void> {
    const shown = new Set(events.map(({ stored }) => stored.nid));
    for (const sender of senders) {
      const key = stateMapKey('m.room.member', sender);
      const nid = state.has(key) ? undefined : await nidAt(this.#engine, head, key, position);
      if (nid !== undefined && !shown.has(nid)) state.set(key, nid);
    }
  }
}

/** Whether the user was not joined at the stream position, and has joined and left the room since then. */
function hasJoinedAndLeft(view: RoomView, after: number | undefined): boolean {
  if (after === undefined || view.membershipAt(after) === 'join') return false;
  return view.lastLeave !== undefined && view.lastLeave.stream > after;
}

/** Adds fields to the user's own membership event: clients show since when the user is invited. */
const withTime = (stored: StoredEvent) => ({
  ...asStripped(stored),
  event_id: stored.event.eventId,
  origin_server_ts: stored.event.originServerTs,
});

const asStripped = (stored: StoredEvent): StrippedState =>
  strippedState({ ...stored.event, content: visibleContent(stored) });

/**
 * Whether the event that ended a user's membership is a membership event of this user. When state resolution or late
 * knowledge of the state ended the membership, it is another event.
 */
export const isOwnMembership = ({ event }: StoredEvent, userId: string): boolean =>
  event.type === 'm.room.member' && event.stateKey === userId;
