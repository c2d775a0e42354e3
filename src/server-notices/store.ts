import type { Database, Reader, Writer } from '../kernel/database/index.ts';
import type { ServerNoticeTables } from './tables.ts';

/** Returns the id of a user's latest notice room; `undefined` for a user without one. */
export async function readNoticeRoom(
  reader: Reader<ServerNoticeTables>,
  userId: string,
): Promise<string | undefined> {
  const row = await reader
    .selectFrom('server_notice_rooms')
    .select('room_id')
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return row?.room_id;
}

/** Sets the notice room of a user. */
export async function writeNoticeRoom(
  writer: Writer<ServerNoticeTables>,
  userId: string,
  roomId: string,
): Promise<void> {
  await writer
    .insertInto('server_notice_rooms')
    .values({ user_id: userId, room_id: roomId })
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet({ room_id: roomId }))
    .execute();
}

/** Returns the version of the policy that the last notice to a user was about. */
export async function readNotifiedVersion(
  reader: Reader<ServerNoticeTables>,
  userId: string,
): Promise<string | undefined> {
  const row = await reader
    .selectFrom('consent_notices')
    .select('version')
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return row?.version;
}

/** Like `readNotifiedVersion`, for other slices. */
export const notifiedVersionOf = (database: Database, userId: string): Promise<string | undefined> =>
  readNotifiedVersion(database.reader<ServerNoticeTables>(), userId);

/** Records that a user was asked to agree to a version of the policy. */
export async function writeNotifiedVersion(
  writer: Writer<ServerNoticeTables>,
  userId: string,
  version: string,
): Promise<void> {
  await writer
    .insertInto('consent_notices')
    .values({ user_id: userId, version })
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet({ version }))
    .execute();
}

/** Whether a room is the latest notice room of a user. */
export const isNoticeRoom = async (database: Database, userId: string, roomId: string): Promise<boolean> =>
  (await readNoticeRoom(database.reader<ServerNoticeTables>(), userId)) === roomId;
