import { PowerLevels, type RoomEvent, type StateLookup, serverOfUser } from '../../protocol/index.ts';

/**
 * Returns whether a redaction in the room's history is applied to its target.
 * Source: room version 3, "Handling redactions".
 * @param state the state before the redaction
 */
export function redactionTakesEffect(redaction: RoomEvent, target: RoomEvent, state: StateLookup): boolean {
  if (redaction.roomId !== target.roomId || target.type === 'm.room.create') return false;
  if (serverOfUser(redaction.sender) === serverOfUser(target.sender)) return true;
  const create = state('m.room.create', '');
  if (!create) return false;
  return new PowerLevels(create, state('m.room.power_levels', '')).reaches(redaction.sender, 'redact');
}
