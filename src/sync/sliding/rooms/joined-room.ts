import { type JsonObject, stateMapKey } from '../../../protocol/index.ts';
import type { RoomHead, RoomReader } from '../../../room-engine/index.ts';
import { RoomView } from '../../../rooms/index.ts';
import type { EventText } from '../../classic/rooms/event-text.ts';
import { nidAt, type StateNids, stateAt, stateChanges } from '../../classic/rooms/room-state.ts';
import { readTimeline, type Timeline } from '../../classic/rooms/timeline.ts';
import type { SourceList } from '../../sources/source-list.ts';
import { nothingSent } from '../connections/sent-room.ts';
import { lazyMembers } from './lazy-members.ts';
import { RequiredState } from './required-state.ts';
import type { RoomActivity } from './room-activity.ts';
import { summaryFields } from './room-fields.ts';
import { nothingNew, type RoomRequest, type RoomResult } from './room-request.ts';
import { roomText } from './room-text.ts';

export interface JoinedRoomDeps {
  readonly engine: RoomReader;
  readonly text: EventText;
  readonly activity: RoomActivity;
  readonly sources: SourceList;
}

/** The state entries of a room that an answer needs. */
interface StateToSend {
  /** All changes since the position of the client. */
  readonly changes: StateNids;
  /** The state events that the answer contains. */
  readonly toSend: StateNids;
  /** The members whom `toSend` contains because the client loads members lazily, with the nids of their events. */
  readonly members: ReadonlyMap<string, number>;
}

/** Makes the entries of rooms that the user is joined to. */
export class JoinedRoom {
  readonly #deps: JoinedRoomDeps;

  constructor(deps: JoinedRoomDeps) {
    this.#deps = deps;
  }

  /** Returns the entry of a room, without text when there is no new data. */
  async render(head: RoomHead, request: RoomRequest): Promise<RoomResult> {
    const { engine, text } = this.#deps;
    const { config, sent, room, connection, isDirect, recipient } = request;
    const isInitial = request.after === undefined;
    // A client that raises the `timeline_limit` receives the newest events again.
    const isExpanded = !isInitial && config.timelineLimit > (sent?.timelineLimit ?? 0);
    const counts = await this.#counts(request);
    const details = { isDirect, counts };
    const lastDetails = connection.sentDetails.room(room.roomNid);
    const detailsChanged = lastDetails
      ? JSON.stringify(lastDetails) !== JSON.stringify(details)
      : request.mayHaveOtherChanges;
    const wantsOtherState = config.state.text !== sent?.requiredState;
    if (!isInitial && !isExpanded && !request.mayHaveNewEvents && !wantsOtherState && !detailsChanged)
      return nothingNew(request);
    const timeline = await this.#timeline(head, request, isInitial || isExpanded);
    const state = await this.#state(head, request, timeline);
    const stored = await engine.events.getMany(state.toSend.values());
    const events = [...stored.values()].map((event) => ({ stored: event, membership: undefined }));
    const isQuiet = !isInitial && !timeline?.limited && !timeline?.events.length && events.length === 0;
    const sentAfterAnswer = {
      timelineLimit: timelineLimitAfter(request, timeline),
      requiredState: config.state.text,
    };
    if (isQuiet && !detailsChanged) return { ...nothingNew(request), sent: sentAfterAnswer };
    const [timelineTexts, requiredState, fields] = await Promise.all([
      text.render(timeline?.events ?? [], recipient),
      text.render(events, recipient),
      this.#fields(head, request, { timeline, changes: state.changes, isInitial, isExpanded, counts }),
    ]);
    return {
      text: roomText({ fields, requiredState, timeline: timelineTexts }),
      sent: sentAfterAnswer,
      isInitial,
      eventIds: timeline?.events.map((event) => event.stored.event.eventId) ?? [],
      members: state.members,
      details,
    };
  }

  async #counts({ recipient: { userId }, room: { roomId }, upTo }: RoomRequest): Promise<JsonObject> {
    const { roomCounts } = this.#deps.sources;
    const fields = await Promise.all(roomCounts.map(({ section }) => section.fields(userId, roomId, upTo)));
    return Object.assign({}, ...fields);
  }

  /** @param isWhole whether to return the newest events, including events that were sent before */
  async #timeline(
    head: RoomHead,
    { config, recipient, after, upTo, mayHaveNewEvents }: RoomRequest,
    isWhole: boolean,
  ): Promise<Timeline | undefined> {
    if (!isWhole && !mayHaveNewEvents) return undefined;
    const { engine, text } = this.#deps;
    const view = isWhole ? await RoomView.open(engine, head, recipient.userId) : undefined;
    const { userId } = recipient;
    const range = { userId, after: isWhole ? undefined : after, upTo, limit: config.timelineLimit, view };
    return readTimeline({ engine, relations: text.relations }, head, recipient.filter, range);
  }

  async #state(head: RoomHead, request: RoomRequest, timeline: Timeline | undefined): Promise<StateToSend> {
    const { engine } = this.#deps;
    const { config, sent, recipient, after, upTo, mayHaveNewEvents } = request;
    let changes: StateNids = new Map();
    const toSend: StateNids = new Map();
    if (after === undefined) {
      for (const key of config.state.select(head.state)) {
        const nid = await nidAt(engine, head, key, upTo);
        if (nid !== undefined) toSend.set(key, nid);
      }
    } else {
      if (mayHaveNewEvents) changes = await stateChanges(engine, head, after, upTo);
      for (const [key, nid] of changes) if (config.state.matches(key)) toSend.set(key, nid);
      if (sent?.requiredState !== config.state.text) {
        const sentState = RequiredState.parse((sent ?? nothingSent).requiredState, recipient.userId);
        const current = await stateAt(engine, head, upTo);
        for (const key of config.state.select(current)) {
          if (!sentState.matches(key)) toSend.set(key, current.get(key) ?? 0);
        }
      }
    }
    const members =
      timeline && config.state.lazyMembers
        ? await lazyMembers(engine, head, request, timeline, changes)
        : new Map<string, number>();
    for (const [userId, nid] of members) toSend.set(stateMapKey('m.room.member', userId), nid);
    return { changes, toSend, members };
  }

  async #fields(
    head: RoomHead,
    { recipient, room, lists, since, upTo, isDirect, connection }: RoomRequest,
    { timeline, changes, isInitial, isExpanded, counts }: FieldsOfJoinedRoom,
  ): Promise<JsonObject> {
    const { engine, activity } = this.#deps;
    const isLive = (stream = 0) => since !== undefined && stream > since;
    const wasDirect = connection.sentDetails.room(room.roomNid)?.isDirect ?? false;
    return {
      ...(isInitial ? { initial: true, membership: 'join' } : undefined),
      ...(await summaryFields(engine, head, recipient.userId, { isInitial, changes, upTo })),
      ...(isDirect || wasDirect ? { is_dm: isDirect } : undefined),
      ...(lists.length > 0 ? { lists: [...lists] } : undefined),
      ...counts,
      ...(timeline && {
        bump_stamp: await activity.bumpStamp(head),
        prev_batch: timeline.prevBatch,
        limited: timeline.limited,
        num_live: timeline.events.filter(({ stored }) => isLive(stored.stream)).length,
      }),
      ...(isExpanded ? { unstable_expanded_timeline: true } : undefined),
    };
  }
}

interface FieldsOfJoinedRoom {
  readonly timeline: Timeline | undefined;
  readonly changes: StateNids;
  readonly isInitial: boolean;
  /** Whether the request has a higher timeline limit than the earlier requests, so that older events are sent. */
  readonly isExpanded: boolean;
  readonly counts: JsonObject;
}

/** Returns how many of the newest events the client has after the answer, as far as it is known. */
function timelineLimitAfter({ config, sent }: RoomRequest, timeline: Timeline | undefined): number {
  const before = sent?.timelineLimit ?? 0;
  return timeline?.limited ? config.timelineLimit : Math.max(before, config.timelineLimit);
}
