import { noFilter } from '../../filters/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { TimeSlices } from '../../kernel/time-slices.ts';
import type { RoomReader, UserRoom } from '../../room-engine/index.ts';
import type { Recipient } from '../classic/recipient.ts';
import { lacksMembersAt } from '../classic/rooms/partial-members.ts';
import type { Changes } from '../feeds/feed.ts';
import { type SourceList, timelineBit } from '../sources/source-list.ts';
import type { Connection, SentChanges } from './connections/connection.ts';
import { sentUpTo } from './connections/sent-room.ts';
import type { ExtensionAnswer } from './extensions/extension.ts';
import type { Extensions } from './extensions/extensions.ts';
import type { ListFilter } from './lists/list-filter.ts';
import type { RoomList } from './lists/room-list.ts';
import { type SelectedRoom, selectRooms } from './lists/selection.ts';
import type { UserMarks } from './lists/user-marks.ts';
import type { SlidingSyncRequest } from './request.ts';
import type { JoinedRoom } from './rooms/joined-room.ts';
import type { RelevantRoom } from './rooms/relevant-room.ts';
import { nothingNew, type RoomRequest } from './rooms/room-request.ts';
import type { UnjoinedRoom } from './rooms/unjoined-room.ts';
import { type RoomChanges, sentAfter } from './sent-changes.ts';

export interface AnswersDeps {
  readonly clock: Clock;
  readonly engine: RoomReader;
  readonly roomList: RoomList;
  readonly listFilter: ListFilter;
  readonly marks: UserMarks;
  readonly joinedRoom: JoinedRoom;
  readonly unjoinedRoom: UnjoinedRoom;
  readonly extensions: Extensions;
  readonly sources: SourceList;
  /** Maximum number of events of a timeline (`filter_timeline_limit`). */
  readonly maxTimelineEvents: number;
}

/** The range `(since, upTo]` of one client's answer. */
export interface AnswerRange {
  readonly connection: Connection;
  readonly since: number | undefined;
  readonly upTo: number;
  /** `undefined` when changes after `since` are no longer in the feed. */
  readonly changes: Changes | undefined;
}

/** An answer that has not been sent yet. */
export interface Answer {
  readonly upTo: number;
  /** The JSON text of an object, as are `rooms` and `extensions`. */
  readonly lists: string;
  readonly rooms: string;
  readonly extensions: string;
  /** Whether there is any new data. */
  readonly hasNewData: boolean;
  /** What the answer changes in the sent state of the connection. */
  readonly sent: SentChanges;
  /** All rooms of the request's lists and subscriptions, with and without new data. */
  readonly relevantRooms: readonly RelevantRoom[];
}

/** Number of rooms that are rendered at the same time: bounds memory and lets other requests run in between. */
const roomsAtOnce = 16;

/** Characters of an answer above which the timelines of further rooms have at most one event: memory is limited. */
const maxCharactersWithTimelines = 16_777_216;

/** Makes answers without changing the connection. */
export class Answers {
  readonly #deps: AnswersDeps;

  constructor(deps: AnswersDeps) {
    this.#deps = deps;
  }

  /**
   * Makes the answer for a range.
   * @param deviceAnswers answers of the extensions about the device
   * @returns `outdated` when a membership has changed after the range, so that the caller must choose a new range
   */
  async make(
    request: SlidingSyncRequest,
    range: AnswerRange,
    deviceAnswers: readonly ExtensionAnswer[],
  ): Promise<Answer | 'outdated'> {
    const { clock, roomList, listFilter, marks, sources, maxTimelineEvents } = this.#deps;
    const { userId, body } = request;
    const { connection, since, upTo } = range;
    const listed = await roomList.of(userId, connection.rooms, since);
    if (listed.some(({ stream }) => stream > upTo)) return 'outdated';
    const userMarks = await marks.of(userId);
    const lacksMembers = ({ roomId, membership }: UserRoom) => {
      const head = membership === 'join' ? this.#deps.engine.heads.peek(roomId) : undefined;
      return head !== undefined && lacksMembersAt(head, upTo);
    };
    const slices = new TimeSlices(clock);
    const selectionRequest = { userId, body, marks: userMarks, maxTimelineEvents, lacksMembers, slices };
    const selection = await selectRooms(listFilter, listed, selectionRequest);
    const roomChanges = await this.#roomChanges(listed, range);
    const context = {
      request,
      range,
      roomChanges,
      isDirect: (roomId: string) => userMarks.direct.has(roomId),
    };
    const relevantRooms = await this.#relevantRooms(context, [...selection.rooms.values()]);
    const deviceId = request.deviceId ?? '';
    const extensions = await this.#deps.extensions.answers(
      { ...range, userId, deviceId, rooms: relevantRooms },
      body.extensions ?? {},
      deviceAnswers,
    );
    const changedRooms = relevantRooms.filter(({ result }) => result.text !== undefined);
    const counts = [...selection.counts].map(([name, count]) => [name, { count }]);
    return {
      upTo,
      lists: JSON.stringify(Object.fromEntries(counts)),
      rooms: objectText(
        changedRooms.map(({ request: { room }, result }) => [room.roomId, result.text ?? '']),
      ),
      extensions: extensionsText(
        extensions.filter((answer) => answer.hasNewData || deviceAnswers.includes(answer)),
      ),
      hasNewData: changedRooms.length > 0 || extensions.some((answer) => answer.hasNewData),
      sent: sentAfter(connection, { listed, relevantRooms, extensions }, roomChanges, sources.extensionBits),
      relevantRooms,
    };
  }

  /** Returns the changes of rooms, from the feed or else from the database. */
  async #roomChanges(
    listed: readonly UserRoom[],
    { connection, since, changes }: AnswerRange,
  ): Promise<RoomChanges> {
    if (changes) return { since, changedBitsOf: ({ roomId }) => changes.rooms.get(roomId) ?? 0 };
    const knownRooms = listed.filter(({ roomNid }) => connection.rooms.has(roomNid));
    const changedRoomNids =
      since === undefined
        ? new Set<number>()
        : await this.#deps.engine.events.changedRooms(
            knownRooms.map(({ roomNid }) => roomNid),
            since,
          );
    const { everyBit } = this.#deps.sources;
    const otherBits = everyBit & ~timelineBit;
    return {
      since,
      changedBitsOf: ({ roomNid }) => (changedRoomNids.has(roomNid) ? everyBit : otherBits),
    };
  }

  async #relevantRooms(context: AnswerContext, selected: readonly SelectedRoom[]): Promise<RelevantRoom[]> {
    const { userId, deviceId } = context.request;
    const recipient: Recipient = {
      userId,
      deviceId,
      filter: noFilter,
      timelineLimit: 0,
      stateAfter: 'state_after',
    };
    const rooms: RelevantRoom[] = [];
    let characters = 0;
    for (let start = 0; start < selected.length; start += roomsAtOnce) {
      const isLong = characters > maxCharactersWithTimelines;
      const chunk = selected
        .slice(start, start + roomsAtOnce)
        .map((room) => (isLong ? withShortTimeline(room) : room));
      const rendered = await Promise.all(chunk.map((room) => this.#relevantRoom(context, recipient, room)));
      for (const { result } of rendered) characters += result.text?.length ?? 0;
      rooms.push(...rendered);
      if (start + roomsAtOnce < selected.length) await new Promise(setImmediate);
    }
    return rooms;
  }

  async #relevantRoom(
    context: AnswerContext,
    recipient: Recipient,
    selected: SelectedRoom,
  ): Promise<RelevantRoom> {
    const { engine, joinedRoom, unjoinedRoom } = this.#deps;
    const { room } = selected;
    const request = this.#roomRequest(context, recipient, selected);
    const changedBits = context.roomChanges.changedBitsOf(room);
    const mayHaveNewData = request.sent === undefined || mayHaveChanged(request);
    const head = mayHaveNewData ? await engine.heads.get(room.roomId) : undefined;
    const renderer = room.membership === 'join' ? joinedRoom : unjoinedRoom;
    const result = head ? await renderer.render(head, request) : nothingNew(request);
    return { request, result, changedBits, isSubscribed: selected.isSubscribed };
  }

  #roomRequest(
    { range, roomChanges, isDirect }: AnswerContext,
    recipient: Recipient,
    { room, config, lists }: SelectedRoom,
  ): RoomRequest {
    const { connection, since, upTo, changes } = range;
    const { clientDataBits } = this.#deps.sources;
    const sent = connection.rooms.get(room.roomNid);
    const sentPosition = sentUpTo(sent?.timeline ?? 'never', since);
    const hasJoinedSince = room.membership === 'join' && room.stream > (sentPosition ?? 0);
    const changedBits = roomChanges.changedBitsOf(room);
    const isLive = sent?.timeline === 'live';
    return {
      room,
      config,
      lists,
      connection,
      recipient,
      sent,
      since,
      after: hasJoinedSince ? undefined : sentPosition,
      upTo,
      mayHaveNewEvents: !isLive || (changedBits & timelineBit) !== 0,
      mayHaveOtherChanges: changedBits !== 0 || ((changes?.user ?? clientDataBits) & clientDataBits) !== 0,
      isDirect: isDirect(room.roomId),
    };
  }
}

/** Returns a room whose timeline has at most one event. */
const withShortTimeline = (room: SelectedRoom): SelectedRoom => ({
  ...room,
  config: { ...room.config, timelineLimit: Math.min(room.config.timelineLimit, 1) },
});

interface AnswerContext {
  readonly request: SlidingSyncRequest;
  readonly range: AnswerRange;
  readonly roomChanges: RoomChanges;
  isDirect(roomId: string): boolean;
}

/** Whether a room that the client knows may have new data. */
function mayHaveChanged({
  mayHaveNewEvents,
  mayHaveOtherChanges,
  config,
  sent,
  room,
  after,
}: RoomRequest): boolean {
  if (mayHaveNewEvents || mayHaveOtherChanges || after === undefined || room.stream > after) return true;
  return config.state.text !== sent?.requiredState || config.timelineLimit > sent.timelineLimit;
}

/** Returns the answers of extensions as a JSON object. */
export const extensionsText = (answers: readonly ExtensionAnswer[]) =>
  objectText(answers.map(({ name, text }) => [name, text]));

/** @param entries JSON texts by name */
function objectText(entries: readonly (readonly [name: string, text: string])[]): string {
  return `{${entries.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`;
}
