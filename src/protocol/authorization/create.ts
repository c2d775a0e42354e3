import type { RoomEvent } from '../event.ts';
import { isUserId } from '../identifiers/index.ts';
import type { JsonValue } from '../json.ts';
import { roomVersions } from '../room-versions.ts';
import { domainOf } from './room-state.ts';
import { allow, reject, type Verdict } from './verdict.ts';

/** Rule 1: `m.room.create`. */
export function authorizeCreate(event: RoomEvent): Verdict {
  // 1.1
  if (event.prevEventIds.length > 0) return reject('a create event has no previous events');
  // 1.2
  const objection = roomIdError[event.version.roomId](event);
  if (objection !== undefined) return reject(objection);
  const { room_version: version, additional_creators: additional } = event.content;
  // 1.3
  if (version !== undefined && !(typeof version === 'string' && roomVersions.has(version))) {
    return reject('the room version is not known');
  }
  // v1 1.4: v1 to v10.
  if (event.version.creator === 'content' && event.content['creator'] === undefined) {
    return reject('the content has no creator');
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
    return isOfSender ? undefined : 'the room id is not of the server of the sender';
  },
  // Since v12.
  'create event': (event) =>
    event.pdu.room_id === undefined ? undefined : 'a create event has no room id of its own',
};

function isListOfUserIds(value: JsonValue): boolean {
  return Array.isArray(value) && value.every((user) => typeof user === 'string' && isUserId(user));
}
