import type { Insertable } from 'kysely';
import type { Reader, Writer } from '../kernel/database/index.ts';
import { type Pusher, type PusherKind, type PusherSettings, toPusher } from './pusher.ts';
import type { PusherTables } from './tables.ts';

type PusherReader = Reader<PusherTables>;
type PusherWriter = Writer<PusherTables>;

/** Maximum number of values in a statement, far fewer than both databases allow. */
const valuesPerStatement = 10_000;

/** Returns the pushers of users. The pushers of one user are in the order of their creation. */
export async function readPushers(reader: PusherReader, userIds: readonly string[]): Promise<Pusher[]> {
  const pushers: Pusher[] = [];
  for (let start = 0; start < userIds.length; start += valuesPerStatement) {
    const rows = await reader
      .selectFrom('pushers')
      .selectAll()
      .where('user_id', 'in', userIds.slice(start, start + valuesPerStatement))
      .orderBy('id')
      .execute();
    for (const row of rows) pushers.push(toPusher(row));
  }
  return pushers;
}

/** Returns the ids of pushers that exist. */
export async function readExistingIds(reader: PusherReader, ids: readonly number[]): Promise<Set<number>> {
  const existing = new Set<number>();
  for (let start = 0; start < ids.length; start += valuesPerStatement) {
    const rows = await reader
      .selectFrom('pushers')
      .select('id')
      .where('id', 'in', ids.slice(start, start + valuesPerStatement))
      .execute();
    for (const { id } of rows) existing.add(id);
  }
  return existing;
}

/** Returns a pusher; `undefined` when it does not exist. */
export async function readPusher(reader: PusherReader, id: number): Promise<Pusher | undefined> {
  const row = await reader.selectFrom('pushers').selectAll().where('id', '=', id).executeTakeFirst();
  return row && toPusher(row);
}

/** Returns the users who have pushers. */
export async function readUsersWithPushers(reader: PusherReader): Promise<string[]> {
  const rows = await reader.selectFrom('pushers').select('user_id').distinct().execute();
  return rows.map(({ user_id }) => user_id);
}

/** Adds a pusher, or replaces the settings of the user's pusher with the same `app_id` and `pushkey`. */
export async function writePusher(
  writer: PusherWriter,
  owner: { readonly userId: string; readonly deviceId: string | undefined; readonly setAt: number },
  settings: PusherSettings,
): Promise<void> {
  const changeableColumns = {
    device_id: owner.deviceId ?? null,
    kind: settings.kind,
    app_display_name: settings.appDisplayName,
    device_display_name: settings.deviceDisplayName,
    profile_tag: settings.profileTag ?? null,
    lang: settings.lang,
    data: JSON.stringify(settings.data),
    enabled: settings.enabled ? 1 : 0,
    set_at: owner.setAt,
    failures: 0,
    failing_since: null,
    retry_at: null,
    // An app that was installed again, or another gateway, has not received the unread count.
    badge: null,
  };
  const { appId: app_id, pushkey } = settings;
  const key = { user_id: owner.userId, app_id, pushkey };
  // The database assigns the id.
  const row = { ...key, ...changeableColumns } as Insertable<PusherTables['pushers']>;
  await writer
    .insertInto('pushers')
    .values(row)
    .onConflict((conflict) =>
      conflict.columns(['user_id', 'app_id', 'pushkey']).doUpdateSet(changeableColumns),
    )
    .execute();
}

/** Finds pushers by `app_id` and `pushkey`. */
export async function findPushers(
  reader: PusherReader,
  { appId, pushkey }: Pick<PusherSettings, 'appId' | 'pushkey'>,
): Promise<Pick<Pusher, 'id' | 'userId' | 'kind'>[]> {
  const rows = await reader
    .selectFrom('pushers')
    .select(['id', 'user_id', 'kind'])
    .where('pushkey', '=', pushkey)
    .where('app_id', '=', appId)
    .execute();
  return rows.map(({ id, user_id, kind }) => ({ id, userId: user_id, kind: kind as PusherKind }));
}

/** Deletes pushers with their pending events and mail throttles. */
export async function deletePushers(writer: PusherWriter, ids: readonly number[]): Promise<void> {
  for (let start = 0; start < ids.length; start += valuesPerStatement) {
    const chunk = ids.slice(start, start + valuesPerStatement);
    await writer.deleteFrom('pushers').where('id', 'in', chunk).execute();
    for (const table of ['pending_pushes', 'mail_throttles'] as const) {
      await writer.deleteFrom(table).where('pusher_id', 'in', chunk).execute();
    }
  }
}
