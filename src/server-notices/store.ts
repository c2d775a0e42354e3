import type { Reader, Writer } from '../kernel/database/index.ts';
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
