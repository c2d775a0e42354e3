import type { SelectQueryBuilder } from 'kysely';
import type { FullText, Reader, Writer } from '../../kernel/database/index.ts';
import { localpartOf, serverOfUser } from '../../protocol/index.ts';
import type { DirectoryTables } from '../tables.ts';

/** The name of the full text index of users. */
export const userTexts = 'user_directory_texts';

/** A user in the directory. */
export interface DirectoryUser {
  readonly userId: string;
  readonly displayName: string | undefined;
  readonly avatarUrl: string | undefined;
}

/** An entry of the directory, with its number in the full text index. */
export interface DirectoryEntry extends DirectoryUser {
  readonly nid: number;
}

/** Only this many characters of a name are searched, because rows that earlier versions wrote may have longer names. */
const maxSearchedName = 500;

/** Returns the searched text: name, local part and server. */
export const searchedText = ({ userId, displayName = '' }: DirectoryUser): string =>
  `${displayName.slice(0, maxSearchedName)}\n${localpartOf(userId)}\n${serverOfUser(userId)}`;

/** Inserts or updates a user. */
export async function writeUser(
  writer: Writer<DirectoryTables>,
  texts: FullText,
  user: DirectoryUser,
): Promise<void> {
  const profile = { display_name: storable(user.displayName), avatar_url: storable(user.avatarUrl) };
  const { nid } = await writer
    .insertInto('user_directory')
    .values({ user_id: user.userId, ...profile } as DirectoryTables['user_directory'])
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet(profile))
    .returning('nid')
    .executeTakeFirstOrThrow();
  await texts.put(writer, [{ id: nid, scope: 0, text: searchedText(user) }]);
}

export async function deleteUser(
  writer: Writer<DirectoryTables>,
  texts: FullText,
  userId: string,
): Promise<void> {
  const row = await writer
    .deleteFrom('user_directory')
    .where('user_id', '=', userId)
    .returning('nid')
    .executeTakeFirst();
  if (row) await texts.remove(writer, [row.nid]);
}

export async function readUsersByNid(
  reader: Reader<DirectoryTables>,
  nids: readonly number[],
): Promise<DirectoryEntry[]> {
  if (nids.length === 0) return [];
  const rows = await reader.selectFrom('user_directory').selectAll().where('nid', 'in', nids).execute();
  return rows.map(toEntry);
}

/** Reads users by id; users that are not in the directory are absent. */
export async function readUsersById(
  reader: Reader<DirectoryTables>,
  userIds: readonly string[],
): Promise<DirectoryEntry[]> {
  if (userIds.length === 0) return [];
  const rows = await reader
    .selectFrom('user_directory')
    .selectAll()
    .where('user_id', 'in', userIds)
    .execute();
  return rows.map(toEntry);
}

/** Returns which of the given rooms have local members and can be joined or read by all users. */
export function readPublicRooms(
  reader: Reader<DirectoryTables>,
  roomNids: readonly number[],
): Promise<Set<number>> {
  return readRooms(reader, roomNids, (rooms) =>
    rooms
      .where('joined_local_members', '>', 0)
      .where(({ eb, or }) =>
        or([eb('join_rule', '=', 'public'), eb('history_visibility', '=', 'world_readable')]),
      ),
  );
}

/**
 * Returns which of the given rooms this server is in. Without rows in `room_stats` (`stats.enabled` is off), returns
 * all of them.
 */
export async function readEnteredRooms(
  reader: Reader<DirectoryTables>,
  roomNids: readonly number[],
): Promise<Set<number>> {
  const left = await readRooms(reader, roomNids, (rooms) => rooms.where('joined_local_members', '=', 0));
  return new Set(roomNids.filter((nid) => !left.has(nid)));
}

type RoomsQuery = SelectQueryBuilder<DirectoryTables, 'room_stats', { room_nid: number }>;

/** Maximum number of rooms in one query. */
const roomsAtOnce = 1_000;

async function readRooms(
  reader: Reader<DirectoryTables>,
  roomNids: readonly number[],
  narrow: (rooms: RoomsQuery) => RoomsQuery,
): Promise<Set<number>> {
  const found = new Set<number>();
  for (let start = 0; start < roomNids.length; start += roomsAtOnce) {
    const rooms = reader
      .selectFrom('room_stats')
      .select('room_nid')
      .where('room_nid', 'in', roomNids.slice(start, start + roomsAtOnce));
    for (const row of await narrow(rooms).execute()) found.add(row.room_nid);
  }
  return found;
}

const toEntry = (row: DirectoryTables['user_directory']): DirectoryEntry => ({
  nid: row.nid,
  userId: row.user_id,
  displayName: row.display_name ?? undefined,
  avatarUrl: row.avatar_url ?? undefined,
});

/** Events may contain U+0000, but databases reject it. */
const storable = (text: string | undefined): string | null => text?.replaceAll('\0', '') ?? null;
