import type { TimeSlices } from '../../../kernel/time-slices.ts';
import type { UserRoom } from '../../../room-engine/index.ts';
import type { SlidingSyncBody } from '../request.ts';
import type { RoomConfig } from '../rooms/room-config.ts';
import { RoomConfigs } from '../rooms/room-configs.ts';
import type { ListFilter } from './list-filter.ts';
import type { Marks } from './user-marks.ts';
import { inWindows } from './windows.ts';

/** A room that the client requests. */
export interface SelectedRoom {
  readonly room: UserRoom;
  readonly config: RoomConfig;
  /** Names of the lists that contain the room. */
  readonly lists: readonly string[];
  readonly isSubscribed: boolean;
}

/** The rooms of all lists and subscriptions of a request. */
export interface Selection {
  /** Number of rooms in each list, inside its windows or not. */
  readonly counts: ReadonlyMap<string, number>;
  /** The selected rooms by room nid. */
  readonly rooms: ReadonlyMap<number, SelectedRoom>;
}

/** The request, and its bounds. */
export interface SelectionRequest {
  readonly userId: string;
  readonly body: SlidingSyncBody;
  readonly marks: Marks;
  /** Maximum number of events of a timeline. */
  readonly maxTimelineEvents: number;
  /** Whether the room was joined without its members and the members are not known yet. */
  readonly lacksMembers: (room: UserRoom) => boolean;
  /** Pauses between lists, because there may be 100 of them. */
  readonly slices: TimeSlices;
}

/** A room while its lists and its subscription are collected. */
interface GrowingRoom extends SelectedRoom {
  config: RoomConfig;
  readonly lists: string[];
  isSubscribed: boolean;
}

/**
 * Selects the rooms of an answer. Source: MSC4186, "Lists and subscriptions".
 * @param rooms the most recently active first
 * @throws MatrixError M_BAD_JSON when the required state is too long
 */
export async function selectRooms(
  filter: ListFilter,
  rooms: readonly UserRoom[],
  { userId, body, marks, maxTimelineEvents, lacksMembers, slices }: SelectionRequest,
): Promise<Selection> {
  const counts = new Map<string, number>();
  const selected = new Map<number, GrowingRoom>();
  const configs = new RoomConfigs(userId, maxTimelineEvents);
  const add = (room: UserRoom, config: RoomConfig, list: string | undefined) => {
    const existing = selected.get(room.roomNid);
    const growing = existing ?? { room, config, lists: [], isSubscribed: false };
    if (existing) existing.config = configs.combined(existing.config, config);
    else selected.set(room.roomNid, growing);
    if (list === undefined) growing.isSubscribed = true;
    else growing.lists.push(list);
  };
  const filtering = { marks, slices, spaces: new Map() };
  for (const [name, list] of Object.entries(body.lists ?? {})) {
    const config = configs.of(list);
    const all = await filter.select(rooms, list.filters, filtering);
    const matching = config.state.hasAllMembers ? all.filter((room) => !lacksMembers(room)) : all;
    counts.set(name, matching.length);
    for (const room of inWindows(matching, list)) add(room, config, name);
    const pause = slices.pauseIfDue();
    if (pause) await pause;
  }
  const subscriptions = Object.entries(body.room_subscriptions ?? {});
  const byId = subscriptions.length > 0 ? new Map(rooms.map((room) => [room.roomId, room])) : undefined;
  for (const [roomId, subscription] of subscriptions) {
    const room = byId?.get(roomId);
    if (!room) continue;
    const config = configs.of(subscription);
    if (!config.state.hasAllMembers || !lacksMembers(room)) add(room, config, undefined);
  }
  return { counts, rooms: selected };
}
