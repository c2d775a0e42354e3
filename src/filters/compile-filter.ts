import { EventFilter, RoomEventFilter } from './event-filter.ts';
import { compileFields, type FieldSelection } from './field-selection.ts';
import { checkFilter, checkRoomEventFilter } from './filter-json.ts';
import { allowedBy, anyOf } from './text-list.ts';

/** A filter that is ready to be applied. Immutable. */
export interface Filter {
  /** `federation`: send events as servers exchange them. */
  readonly format: 'client' | 'federation';
  /** `undefined` when events are sent whole. */
  readonly selectFields: FieldSelection | undefined;
  readonly presence: EventFilter;
  /** For account data that does not belong to a room. */
  readonly accountData: EventFilter;
  readonly room: RoomFilter;
}

export interface RoomFilter {
  /** Whether a room is looked at at all, before the filters of its parts. */
  passesRoom(roomId: string): boolean;
  /** Also send rooms that the user has left. */
  readonly includeLeave: boolean;
  readonly state: RoomEventFilter;
  readonly timeline: RoomEventFilter;
  readonly ephemeral: RoomEventFilter;
  readonly accountData: RoomEventFilter;
}

/**
 * Compiles a filter, for `/sync` and all that takes the whole of it. An empty object lets everything pass.
 * @throws MatrixError M_BAD_JSON
 */
export function compileFilter(json: unknown): Filter {
  const { room = {}, ...filter } = checkFilter(json);
  const passesRoom = allowedBy(room.rooms, room.not_rooms, anyOf) ?? (() => true);
  return {
    format: filter.event_format ?? 'client',
    selectFields: filter.event_fields && compileFields(filter.event_fields),
    presence: new EventFilter(filter.presence ?? {}),
    accountData: new EventFilter(filter.account_data ?? {}),
    room: {
      passesRoom,
      includeLeave: room.include_leave ?? false,
      state: new RoomEventFilter(room.state ?? {}),
      timeline: new RoomEventFilter(room.timeline ?? {}),
      ephemeral: new RoomEventFilter(room.ephemeral ?? {}),
      accountData: new RoomEventFilter(room.account_data ?? {}),
    },
  };
}

/**
 * Compiles a filter for events of rooms, as `/messages`, `/context` and `/search` take it.
 * @throws MatrixError M_BAD_JSON
 */
export const compileRoomEventFilter = (json: unknown) => new RoomEventFilter(checkRoomEventFilter(json));

/** Lets everything pass. */
export const noFilter: Filter = compileFilter({});
