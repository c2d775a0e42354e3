import type { RoomEvent } from '../event.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';

/** A state event as those see it who are not in the room. Source: client-server API, "Stripped state". */
export interface StrippedState extends JsonObject {
  readonly type: string;
  readonly state_key: string;
  readonly sender: string;
  readonly content: JsonObject;
}

/** A state event of this server's, stripped. */
export function strippedState(event: RoomEvent): StrippedState {
  const { type, stateKey, sender, content } = event;
  return { type, state_key: stateKey ?? '', sender, content };
}

/**
 * Stripped state from another server, which may have sent anything: the four members, or `undefined` if they are not
 * there. Servers must not pass on what they received as it was.
 */
export function parseStrippedState(json: JsonValue): StrippedState | undefined {
  if (!isJsonObject(json)) return undefined;
  const { type, state_key, sender, content } = json;
  if (typeof type !== 'string' || typeof state_key !== 'string' || typeof sender !== 'string')
    return undefined;
  return isJsonObject(content) ? { type, state_key, sender, content } : undefined;
}
