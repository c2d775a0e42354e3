import { EventFilter, RoomEventFilter } from './event-filter.ts';
import { compileFields, type FieldSelection } from './field-selection.ts';
import { checkFilter, checkRoomEventFilter } from './filter-json.ts';
import { allowedBy, anyOf } from './text-list.ts';

/** A compiled filter. Immutable. */
export interface Filter {
  /** `federation`: send events in the format of the federation API. */
  readonly format: 'client' | 'federation';
  /** `undefined` to send whole events. */
  readonly selectFields: FieldSelection | undefined;
  readonly presence: EventFilter;
  /** For global account data. */
  readonly accountData: EventFilter;
  readonly room: RoomFilter;
}

export interface RoomFilter {
  /** Whether the response contains the room. The members below filter the events of rooms that pass. */
  passesRoom(roomId: string): boolean;
  /** Whether to include rooms that the user has left. */
  readonly includeLeave: boolean;
  readonly state: RoomEventFilter;
  readonly timeline: RoomEventFilter;
  readonly ephemeral: RoomEventFilter;
  readonly accountData: RoomEventFilter;
}

/**
 * Compiles a filter in the format of `/sync`. An empty object passes everything.
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
 * Compiles a filter for room events, in the format of `/messages`, `/context` and `/search`.
 * @throws MatrixError M_BAD_JSON
 */
export const compileRoomEventFilter = (json: unknown) => new RoomEventFilter(checkRoomEventFilter(json));

/** Passes everything. */
export const noFilter: Filter = compileFilter({});
