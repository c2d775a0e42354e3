import { type Pdu, type RoomEvent, type Signatures, stateMapKey } from '../../event.ts';
import type { JsonObject } from '../../json.ts';
import { getRoomVersion, type RoomVersion } from '../../room-versions.ts';
import type { StateLookup } from '../index.ts';

/** The fields of an event that a test sets; the others have default values. */
export interface EventFields {
  readonly type: string;
  readonly sender: string;
  readonly stateKey?: string | undefined;
  readonly content?: JsonObject;
  readonly eventId?: string;
  readonly roomId?: string;
  readonly authEventIds?: readonly string[];
  readonly prevEventIds?: readonly string[];
  readonly originServerTs?: number;
  readonly depth?: number;
  readonly redacts?: string;
  readonly signatures?: Signatures;
  /** The `room_id` in the PDU; by default the room id of the event. Create events since v12 have none by default. */
  readonly pduRoomId?: string;
}

/** The id of the create event of each test room; since v12 `roomIdOf` derives the room id from it. */
export const createId = '$create:a.example';

export function roomIdOf(version: RoomVersion): string {
  return version.roomId === 'create event' ? `!${createId.slice(1)}` : '!room:a.example';
}

/** Makes an event as it is after parsing. */
export function testEvent(version: RoomVersion, fields: EventFields): RoomEvent {
  const { type, sender, content = {}, originServerTs = 0, depth = 1, redacts } = fields;
  const roomId = fields.roomId ?? roomIdOf(version);
  const hasRoomId = type !== 'm.room.create' || version.roomId === 'origin';
  const pduRoomId = fields.pduRoomId ?? (hasRoomId ? roomId : undefined);
  const pdu: Pdu = {
    type,
    sender,
    content,
    depth,
    origin_server_ts: originServerTs,
    ...(pduRoomId === undefined ? {} : { room_id: pduRoomId }),
    ...(fields.stateKey === undefined ? {} : { state_key: fields.stateKey }),
    ...(fields.signatures === undefined ? {} : { signatures: fields.signatures }),
  };
  return {
    eventId: fields.eventId ?? '$event:a.example',
    roomId,
    type,
    stateKey: fields.stateKey,
    sender,
    content,
    depth,
    originServerTs,
    authEventIds: fields.authEventIds ?? [],
    prevEventIds: fields.prevEventIds ?? ['$previous:a.example'],
    redacts,
    version,
    pdu,
  };
}

/** Returns the version with that number. @throws Error if there is none */
export function version(number: number | string): RoomVersion {
  const found = getRoomVersion(String(number));
  if (found === undefined) throw new Error(`There is no room version ${number}`);
  return found;
}

/** Makes a lookup in a state that has these events. */
export function lookupIn(events: readonly RoomEvent[]): StateLookup {
  const state = new Map(events.map((event) => [stateMapKey(event.type, event.stateKey ?? ''), event]));
  return (type, stateKey) => state.get(stateMapKey(type, stateKey));
}
