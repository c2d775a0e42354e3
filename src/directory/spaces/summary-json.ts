import type { JsonObject } from '../../protocol/index.ts';
import type { RoomDescription } from '../room-stats/room-description.ts';

/** The only algorithm that the specification lets a summary name. */
const knownEncryption = 'm.megolm.v1.aes-sha2';

/**
 * Returns the summary of a room for clients and servers.
 * Source: client-server API, `GET /room_summary/{roomIdOrAlias}`.
 */
export function summaryJson(room: RoomDescription): JsonObject {
  return {
    room_id: room.roomId,
    ...(room.name === undefined ? undefined : { name: room.name }),
    ...(room.topic === undefined ? undefined : { topic: room.topic }),
    ...(room.canonicalAlias === undefined ? undefined : { canonical_alias: room.canonicalAlias }),
    ...(room.avatarUrl?.startsWith('mxc://') ? { avatar_url: room.avatarUrl } : undefined),
    ...(room.roomType === undefined ? undefined : { room_type: room.roomType }),
    ...(room.allowedRoomIds.length > 0 ? { allowed_room_ids: [...room.allowedRoomIds] } : undefined),
    ...(room.encryption === knownEncryption ? { encryption: room.encryption } : undefined),
    ...(room.roomVersion === undefined ? undefined : { room_version: room.roomVersion }),
    num_joined_members: room.joinedMembers,
    world_readable: room.worldReadable,
    guest_can_join: room.guestCanJoin,
    join_rule: room.joinRule,
  };
}
