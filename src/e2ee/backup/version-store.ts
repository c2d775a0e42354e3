import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { E2eeTables } from '../tables.ts';

/** A backup of a user's room keys. */
export interface Backup {
  readonly version: number;
  readonly algorithm: string;
  readonly authData: JsonObject;
  /** Increases with each change of the keys. */
  readonly etag: number;
  /** How many keys the backup has. */
  readonly count: number;
}

/** Returns a backup. @param version absent: the newest backup of the user */
export async function readBackup(
  reader: Reader<E2eeTables>,
  userId: string,
  version?: number,
): Promise<Backup | undefined> {
  let query = reader.selectFrom('room_key_backups').selectAll().where('user_id', '=', userId);
  if (version !== undefined) query = query.where('version', '=', version);
  const row = await query.orderBy('version', 'desc').limit(1).executeTakeFirst();
  return (
    row && {
      version: row.version,
      algorithm: row.algorithm,
      authData: JSON.parse(row.auth_data) as JsonObject,
      etag: row.etag,
      count: row.key_count,
    }
  );
}

/** Returns the version of the last backup that a user created, 0 without one. */
export async function readLastVersion(reader: Reader<E2eeTables>, userId: string): Promise<number> {
  const row = await reader
    .selectFrom('room_key_versions')
    .select('last_version')
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return row?.last_version ?? 0;
}

export async function countBackups(reader: Reader<E2eeTables>, userId: string): Promise<number> {
  const row = await reader
    .selectFrom('room_key_backups')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('user_id', '=', userId)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

export async function insertBackup(
  writer: Writer<E2eeTables>,
  userId: string,
  { version, algorithm, authData }: Pick<Backup, 'version' | 'algorithm' | 'authData'>,
): Promise<void> {
  await writer
    .insertInto('room_key_versions')
    .values({ user_id: userId, last_version: version })
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet({ last_version: version }))
    .execute();
  const auth_data = JSON.stringify(authData);
  await writer
    .insertInto('room_key_backups')
    .values({ user_id: userId, version, algorithm, auth_data, etag: 0, key_count: 0 })
    .execute();
}

export async function updateAuthData(
  writer: Writer<E2eeTables>,
  userId: string,
  version: number,
  authData: JsonObject,
): Promise<void> {
  await writer
    .updateTable('room_key_backups')
    .set({ auth_data: JSON.stringify(authData) })
    .where('user_id', '=', userId)
    .where('version', '=', version)
    .execute();
}

/** Increases the ETag of a backup and sets its key count. */
export async function updateKeyCount(
  writer: Writer<E2eeTables>,
  userId: string,
  { version, etag }: Backup,
  count: number,
): Promise<void> {
  await writer
    .updateTable('room_key_backups')
    .set({ etag: etag + 1, key_count: count })
    .where('user_id', '=', userId)
    .where('version', '=', version)
    .execute();
}

/** Deletes a backup with its keys. */
export async function deleteBackup(
  writer: Writer<E2eeTables>,
  userId: string,
  version: number,
): Promise<void> {
  for (const table of ['room_keys', 'room_key_backups'] as const) {
    await writer.deleteFrom(table).where('user_id', '=', userId).where('version', '=', version).execute();
  }
}
