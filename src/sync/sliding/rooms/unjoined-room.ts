import { stateMapKey } from '../../../protocol/index.ts';
import type { RoomHead, RoomReader } from '../../../room-engine/index.ts';
import { RoomView, type VisibleEvent } from '../../../rooms/index.ts';
import type { EventText } from '../../classic/rooms/event-text.ts';
import { type StateNids, stateChanges, stateOfGroup } from '../../classic/rooms/room-state.ts';
import { readTimeline, type Timeline } from '../../classic/rooms/timeline.ts';
import { isOwnMembership, type UnjoinedRooms } from '../../classic/rooms/unjoined-rooms.ts';
import { pastFields } from './room-fields.ts';
import { nothingNew, type RoomRequest, type RoomResult } from './room-request.ts';
import { roomText } from './room-text.ts';

export interface UnjoinedRoomDeps {
  readonly engine: RoomReader;
  readonly text: EventText;
  readonly unjoinedRooms: UnjoinedRooms;
}

/** Makes the entries of rooms that the user is not joined to: invited, knocking, left or banned. */
export class UnjoinedRoom {
  readonly #deps: UnjoinedRoomDeps;

  constructor(deps: UnjoinedRoomDeps) {
    this.#deps = deps;
  }

  /** Returns the entry of a room, without text when the client has received the user's current membership. */
  async render(head: RoomHead, request: RoomRequest): Promise<RoomResult> {
    const { room, after } = request;
    // After a user's membership has ended, later events of the room are not for the user.
    if (after !== undefined && room.stream <= after) return nothingNew(request);
    const isPrejoin = room.membership === 'invite' || room.membership === 'knock';
    return isPrejoin ? this.#prejoin(head, request) : this.#left(head, request);
  }

  async #prejoin(head: RoomHead, request: RoomRequest): Promise<RoomResult> {
    const { room, isDirect } = request;
    const strippedState = await this.#deps.unjoinedRooms.strippedEvents(head, room);
    const fields = { initial: true, ...commonFields(request), ...(isDirect && { is_dm: true }) };
    return { ...nothingNew(request), text: roomText({ fields, strippedState }), isInitial: true };
  }

  async #left(head: RoomHead, request: RoomRequest): Promise<RoomResult> {
    const { engine, text } = this.#deps;
    const { config, recipient, after, since, sent } = request;
    const isInitial = after === undefined;
    const view = await RoomView.open(engine, head, recipient.userId);
    const timeline = await this.#timeline(head, request, view);
    const state = await this.#state(head, request, view);
    const stored = await engine.events.getMany(config.state.select(state).map((key) => state.get(key) ?? 0));
    const [timelineTexts, requiredState] = await Promise.all([
      text.render(timeline.events, recipient),
      text.render(
        [...stored.values()].map((event) => ({ stored: event, membership: undefined })),
        recipient,
      ),
    ]);
    const fields = {
      ...(isInitial ? { initial: true, ...(await pastFields(engine, state)) } : undefined),
      ...commonFields(request),
      prev_batch: timeline.prevBatch,
      limited: timeline.limited,
      num_live: timeline.events.filter((event) => since !== undefined && (event.stored.stream ?? 0) > since)
        .length,
    };
    return {
      text: roomText({ fields, requiredState, timeline: timelineTexts }),
      sent: {
        timelineLimit: Math.max(config.timelineLimit, sent?.timelineLimit ?? 0),
        requiredState: config.state.text,
      },
      isInitial,
      eventIds: timeline.events.map((event) => event.stored.event.eventId),
      members: new Map(),
      details: undefined,
    };
  }

  /**
   * Returns the timeline with the user's leave event at its end, even if the user may not see other events; without the
   * leave event when the client wants no timeline.
   */
  async #timeline(
    head: RoomHead,
    { room, config, recipient, after }: RoomRequest,
    view: RoomView,
  ): Promise<Timeline> {
    const { engine, text } = this.#deps;
    const { timelineLimit } = config;
    const { userId, filter } = recipient;
    const read = (limit: number) => {
      const range = { userId, after, upTo: room.stream, limit, view };
      return readTimeline({ engine, relations: text.relations }, head, filter, range);
    };
    const timeline = await read(room.forgotten ? 0 : timelineLimit);
    const membershipEvent = await engine.events.get(room.eventNid);
    if (
      timelineLimit === 0 ||
      !membershipEvent ||
      !isOwnMembership(membershipEvent, userId) ||
      timeline.events.some(({ stored }) => stored.nid === membershipEvent.nid)
    )
      return timeline;
    const shown: VisibleEvent = { stored: membershipEvent, membership: room.membership };
    const earlier = timeline.events.length < timelineLimit ? timeline : await read(timelineLimit - 1);
    return { ...earlier, events: [...earlier.events, shown] };
  }

  /**
   * Returns the user's own membership event, and the state at the end of the user's last membership: the whole state,
   * or only the changes if the user was joined at the client's position.
   */
  async #state(head: RoomHead, { room, recipient, after }: RoomRequest, view: RoomView): Promise<StateNids> {
    const { engine } = this.#deps;
    const { lastLeave } = view;
    let state: StateNids = new Map();
    if (lastLeave && !room.forgotten && (after === undefined || lastLeave.stream > after)) {
      const wasJoined = after !== undefined && view.membershipAt(after) === 'join';
      state = wasJoined
        ? await stateChanges(engine, head, after, lastLeave.stream)
        : await stateOfGroup(engine, lastLeave.event?.stateGroup);
    }
    const membershipEvent = await engine.events.get(room.eventNid);
    if (!membershipEvent || !isOwnMembership(membershipEvent, recipient.userId)) return state;
    return state.set(stateMapKey('m.room.member', recipient.userId), room.eventNid);
  }
}

/** Returns the fields of every room that the user is not joined to. */
function commonFields({ room, lists }: RoomRequest) {
  return {
    membership: room.membership,
    bump_stamp: room.stream,
    ...(lists.length > 0 && { lists: [...lists] }),
  };
}
