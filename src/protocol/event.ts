import type { JsonObject } from './json.ts';
import type { RoomVersion } from './room-versions.ts';

/** Server name to key id to unpadded base64 signature. */
export type Signatures = Readonly<Record<string, Readonly<Record<string, string>>>>;

/**
 * An event as servers exchange it: the JSON that is hashed and signed, in any room version.
 * Source: "Event format" of each room version.
 */
export interface Pdu extends JsonObject {
  readonly type: string;
  readonly sender: string;
  readonly content: JsonObject;
  readonly depth: number;
  readonly origin_server_ts: number;
  /** Absent in the create event of room version 12 and later. */
  readonly room_id?: string;
  readonly state_key?: string;
}

/**
 * An event after parsing: the PDU and its fields. The place of some fields in the PDU depends on the room version; here
 * they have one place, so that no rule needs to know the format. Immutable.
 */
export interface RoomEvent {
  readonly eventId: string;
  readonly roomId: string;
  readonly type: string;
  /** `undefined` for message events. */
  readonly stateKey: string | undefined;
  readonly sender: string;
  readonly content: JsonObject;
  readonly depth: number;
  /** Milliseconds since the epoch, as the origin claims. */
  readonly originServerTs: number;
  readonly authEventIds: readonly string[];
  readonly prevEventIds: readonly string[];
  /**
   * The event that a redaction redacts, wherever the room version puts it (`redacts` or `content.redacts`).
   */
  readonly redacts: string | undefined;
  readonly version: RoomVersion;
  readonly pdu: Pdu;
}

/** The state of a room: values (usually events or their ids) by `stateMapKey(type, stateKey)`. */
export type StateMap<T> = ReadonlyMap<string, T>;

/**
 * Returns the key of one entry in a `StateMap`. The length prefix keeps it unambiguous: the type and the
 * state key may hold any character, NUL included, so no separator would do.
 */
export function stateMapKey(type: string, stateKey: string): string {
  return `${type.length}:${type}${stateKey}`;
}

/** Splits a key made by `stateMapKey` into `[type, stateKey]`. */
export function splitStateMapKey(key: string): [type: string, stateKey: string] {
  const colon = key.indexOf(':');
  const end = colon + 1 + Number(key.slice(0, colon));
  return [key.slice(colon + 1, end), key.slice(end)];
}
