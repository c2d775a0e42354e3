import { foldText, type Writer } from '../../kernel/database/index.ts';
import type { DirectoryTables } from '../tables.ts';
import type { RoomDetails } from './room-description.ts';

/** Searches cover at most this many characters of a room's name, alias and topic together. */
const maxSearched = 2_000;

export type RoomRow = DirectoryTables['room_stats'];

export async function writeRoomStats(
  writer: Writer<DirectoryTables>,
  { room_nid, ...row }: RoomRow,
): Promise<void> {
  await writer
    .insertInto('room_stats')
    .values({ room_nid, ...row })
    .onConflict((conflict) => conflict.column('room_nid').doUpdateSet(row))
    .execute();
}

export async function deleteRoomStats(writer: Writer<DirectoryTables>, roomId: string): Promise<void> {
  for (const table of ['room_stats', 'listed_rooms', 'room_servers'] as const)
    await writer.deleteFrom(table).where('room_id', '=', roomId).execute();
}

/** Returns the row of a room. */
export function roomStatsRow(room: RoomDetails): RoomRow {
  const searched = [room.name, room.canonicalAlias, room.topic].filter((text) => text !== undefined);
  return {
    room_nid: room.roomNid,
    room_id: room.roomId,
    name: storable(room.name),
    topic: storable(room.topic),
    canonical_alias: storable(room.canonicalAlias),
    avatar_url: storable(room.avatarUrl),
    join_rule: withoutNul(room.joinRule),
    history_visibility: withoutNul(room.historyVisibility),
    guest_can_join: room.guestCanJoin ? 1 : 0,
    room_type: storable(room.roomType),
    encryption: storable(room.encryption),
    version: room.roomVersion,
    creator: room.creator,
    federatable: room.federatable ? 1 : 0,
    joined_members: room.joinedMembers,
    joined_local_members: room.joinedLocalMembers,
    invited_members: room.invitedMembers,
    state_events: room.stateEvents,
    search_text: withoutNul(foldText(searched.join('\n').slice(0, maxSearched))),
  };
}

/** Events may contain U+0000, but databases reject it. */
const withoutNul = (text: string): string => text.replaceAll('\0', '');

const storable = (text: string | undefined): string | null => (text === undefined ? null : withoutNul(text));
