import type { RoomEvent } from '../event.ts';
import { isUserId } from '../identifiers/index.ts';
import type { JsonValue } from '../json.ts';
import { roomVersions } from '../room-versions.ts';
import { domainOf } from './room-state.ts';
import { allow, reject, type Verdict } from './verdict.ts';

/**
 * Rule 1, `m.room.create`:
 * - 1.1: rejects an event with previous events.
 * - 1.2: rejects a room id that is not on the server of the sender (v1 to v11), or any room id (since v12).
 * - 1.3: rejects a room version that is not supported.
 * - v1 1.4: rejects an event without `content.creator` (v1 to v10).
 * - 1.4: rejects `additional_creators` that are not a list of user ids (since v12).
 * - 1.5: allows any other create event.
 */
export function authorizeCreate(event: RoomEvent): Verdict {
  // 1.1
  if (event.prevEventIds.length > 0) return reject('A create event must not have previous events');
  // 1.2
  const error = roomIdError[event.version.roomId](event);
  if (error !== undefined) return reject(error);
  const { room_version: version, additional_creators: additional } = event.content;
  // 1.3
  if (version !== undefined && !(typeof version === 'string' && roomVersions.has(version))) {
    return reject('The room version is not supported');
  }
  // v1 1.4: v1 to v10.
  if (event.version.creator === 'content' && event.content['creator'] === undefined) {
    return reject('The content of the create event has no creator');
  }
  // 1.4: since v12.
  if (event.version.privilegedCreators && additional !== undefined && !isListOfUserIds(additional)) {
    return reject('additional_creators is not a list of user ids');
  }
  // 1.5
  return allow();
}

const roomIdError: Readonly<
  Record<RoomEvent['version']['roomId'], (event: RoomEvent) => string | undefined>
> = {
  // v1 to v11.
  origin: (event) => {
    const domain = domainOf(event.roomId);
    const isOfSender = domain !== undefined && domain === domainOf(event.sender);
    return isOfSender ? undefined : 'The room id is not on the server of the sender';
  },
  // Since v12.
  'create event': (event) =>
    event.pdu.room_id === undefined ? undefined : 'A create event must not have a room_id',
};

function isListOfUserIds(value: JsonValue): boolean {
  return Array.isArray(value) && value.every((user) => typeof user === 'string' && isUserId(user));
}
