import {
  getRoomVersion,
  type Pdu,
  parseJsonObject,
  type RoomEvent,
  roomEventOf,
} from '../../protocol/index.ts';
import type { StoredEvent } from '../stored-event.ts';
import { EventFlag } from '../tables.ts';

/** The columns that make a `StoredEvent`. */
export const eventColumns = [
  'events.nid',
  'events.room_nid',
  'events.event_id',
  'events.stream',
  'events.state_group',
  'events.state_before',
  'events.replaces',
  'events.flags',
  'events.redacted_by',
  'events.json',
  'rooms.version',
] as const;

export interface EventRow {
  nid: number;
  room_nid: number;
  event_id: string;
  stream: number | null;
  state_group: number | null;
  state_before: number | null;
  replaces: number | null;
  flags: number;
  redacted_by: number | null;
  json: string;
  version: string;
}

/** Parses an event from its stored PDU. @param versionId the room version of the event */
export function parseEvent(json: string, versionId: string, eventId: string): RoomEvent {
  const version = getRoomVersion(versionId);
  if (!version) throw new Error(`the event ${eventId} has the unknown room version ${versionId}`);
  const numbers = version.strictCanonicalJson ? 'values' : 'as written';
  return roomEventOf(parseJsonObject(json, { numbers }) as Pdu, version, eventId);
}

/** Converts a row to a stored event. */
export function storedEventOf(row: EventRow): StoredEvent {
  const stateGroup = row.state_group ?? undefined;
  return {
    nid: row.nid,
    roomNid: row.room_nid,
    event: parseEvent(row.json, row.version, row.event_id),
    stream: row.stream ?? undefined,
    stateGroup,
    stateBefore: row.state_before ?? stateGroup,
    replaces: row.replaces ?? undefined,
    rejected: (row.flags & EventFlag.rejected) !== 0,
    softFailed: (row.flags & EventFlag.softFailed) !== 0,
    distribute: (row.flags & EventFlag.distribute) !== 0,
    acceptedElsewhere: (row.flags & EventFlag.acceptedElsewhere) !== 0,
    resolves: (row.flags & EventFlag.resolves) !== 0,
    followsGap: (row.flags & EventFlag.followsGap) !== 0,
    withheld: (row.flags & EventFlag.withheld) !== 0,
    outOfBand: false,
    redactedBy: row.redacted_by ?? undefined,
  };
}

/**
 * A row of `outside_events`, the table of out-of-band events: membership events of rooms that this server is not in.
 */
export type OutOfBandRow = Pick<EventRow, 'nid' | 'room_nid' | 'event_id' | 'json' | 'version'>;

/** Converts a row of `outside_events`: an out-of-band event has no position and no state. */
export function outOfBandEventOf(row: OutOfBandRow): StoredEvent {
  const nullColumns = {
    stream: null,
    state_group: null,
    state_before: null,
    replaces: null,
    redacted_by: null,
  };
  return { ...storedEventOf({ ...row, ...nullColumns, flags: 0 }), outOfBand: true };
}
