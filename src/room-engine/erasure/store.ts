import type { Reader, Writer } from '../../kernel/database/index.ts';

/** The table of users who requested erasure. */
export interface ErasureTables {
  /** `position`: position of the request on the streams. */
  erased_users: { user_id: string; position: number };
}

/** Reads all users who requested erasure, with the positions of their requests. */
export async function readErasedUsers(reader: Reader<ErasureTables>): Promise<Map<string, number>> {
  const rows = await reader.selectFrom('erased_users').selectAll().execute();
  return new Map(rows.map((row) => [row.user_id, row.position]));
}

/** Stores that a user requested erasure; a user who is stored already keeps the earlier position. */
export async function insertErasedUser(
  writer: Writer<ErasureTables>,
  userId: string,
  position: number,
): Promise<void> {
  await writer
    .insertInto('erased_users')
    .values({ user_id: userId, position })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}
