import type { UserRoom } from '../../../room-engine/index.ts';
import type { ListRequest, SlidingSyncBody } from '../request.ts';
import { RequiredState } from '../rooms/required-state.ts';
import { combine, type RoomConfig } from '../rooms/room-config.ts';
import type { ListFilter } from './list-filter.ts';
import type { Marks } from './user-marks.ts';

/** A room that the client asks for. */
export interface SelectedRoom {
  readonly room: UserRoom;
  readonly config: RoomConfig;
  readonly lists: readonly string[];
  readonly isSubscribed: boolean;
}

/** The rooms of all lists and subscriptions of a request. */
export interface Selection {
  /** Number of rooms in each list, inside its windows or not. */
  readonly counts: ReadonlyMap<string, number>;
  readonly rooms: ReadonlyMap<number, SelectedRoom>;
}

/** The request, and its bounds. */
export interface SelectionRequest {
  readonly userId: string;
  readonly body: SlidingSyncBody;
  readonly marks: Marks;
  /** Maximum number of events of a timeline. */
  readonly maxEvents: number;
  /** Whether the room was joined without its members and these are not known yet. */
  readonly isPartial: (room: UserRoom) => boolean;
}

/**
 * Selects the rooms of an answer. Source: MSC4186, "Lists and subscriptions".
 * @param rooms the most recently active first
 */
export async function selectRooms(
  filter: ListFilter,
  rooms: readonly UserRoom[],
  { userId, body, marks, maxEvents, isPartial }: SelectionRequest,
): Promise<Selection> {
  const counts = new Map<string, number>();
  const selected = new Map<number, SelectedRoom>();
  const combined = new ConfigCombiner();
  const configOf = ({
    timeline_limit,
    required_state,
  }: Pick<ListRequest, 'timeline_limit' | 'required_state'>) => ({
    timelineLimit: Math.min(timeline_limit, maxEvents),
    state: RequiredState.of([required_state ?? []], userId),
  });
  const add = (room: UserRoom, config: RoomConfig, list: string | undefined) => {
    const present = selected.get(room.roomNid);
    selected.set(room.roomNid, {
      room,
      config: combined.of(present?.config, config),
      lists: list === undefined ? (present?.lists ?? []) : [...(present?.lists ?? []), list],
      isSubscribed: list === undefined || (present?.isSubscribed ?? false),
    });
  };
  for (const [name, list] of Object.entries(body.lists ?? {})) {
    const config = configOf(list);
    const all = await filter.select(rooms, list.filters, marks);
    const matching = config.state.hasAllMembers ? all.filter((room) => !isPartial(room)) : all;
    counts.set(name, matching.length);
    for (const room of inWindows(matching, list)) add(room, config, name);
  }
  const subscriptions = Object.entries(body.room_subscriptions ?? {});
  const byId = subscriptions.length > 0 ? new Map(rooms.map((room) => [room.roomId, room])) : undefined;
  for (const [roomId, subscription] of subscriptions) {
    const room = byId?.get(roomId);
    if (!room) continue;
    const config = configOf(subscription);
    if (!config.state.hasAllMembers || !isPartial(room)) add(room, config, undefined);
  }
  return { counts, rooms: selected };
}

/** Returns the rooms in the windows of a list; all rooms if it has no windows. */
function inWindows(rooms: readonly UserRoom[], { ranges, range }: ListRequest): readonly UserRoom[] {
  const windows = ranges ?? (range ? [range] : undefined);
  if (!windows) return rooms;
  const places = new Set<UserRoom>();
  for (const [first, last] of windows) for (const room of rooms.slice(first, last + 1)) places.add(room);
  return [...places];
}

/** Combines room configurations, each pair once, because many rooms are in the same lists. */
class ConfigCombiner {
  readonly #known = new Map<RoomConfig, Map<RoomConfig, RoomConfig>>();

  of(one: RoomConfig | undefined, other: RoomConfig): RoomConfig {
    if (!one) return other;
    const byOther = this.#known.get(one) ?? new Map<RoomConfig, RoomConfig>();
    this.#known.set(one, byOther);
    const known = byOther.get(other) ?? combine(one, other);
    byOther.set(other, known);
    return known;
  }
}
