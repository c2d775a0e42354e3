import type { RoomEvent } from '../event.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';

/** A state event as shown to users who are not in the room. Source: client-server API, "Stripped state". */
export interface StrippedState extends JsonObject {
  readonly type: string;
  readonly state_key: string;
  readonly sender: string;
  readonly content: JsonObject;
}

/**
 * Returns the stripped form of a state event that this server has checked. Where the room id is the hash of the create
 * event, the stripped form of the create event is the whole PDU, because the PDU proves the room id.
 * Source: client-server API, "Stripped state".
 */
export function strippedState(event: RoomEvent): StrippedState {
  const { type, stateKey, sender, content, version, pdu } = event;
  if (version.roomId === 'create event' && type === 'm.room.create' && stateKey === '') {
    return { ...pdu, type, state_key: stateKey, sender, content };
  }
  return { type, state_key: stateKey ?? '', sender, content };
}

/**
 * Reads a stripped state event from another server, which may have sent anything. Returns only the four fields, or
 * `undefined` if a field is missing or malformed. Servers must not pass on stripped state as they received it.
 */
export function parseStrippedState(json: JsonValue): StrippedState | undefined {
  if (!isJsonObject(json)) return undefined;
  const { type, state_key, sender, content } = json;
  if (typeof type !== 'string' || typeof state_key !== 'string' || typeof sender !== 'string')
    return undefined;
  return isJsonObject(content) ? { type, state_key, sender, content } : undefined;
}
