import type { Insertable } from 'kysely';
import type { Reader, Writer } from '../kernel/database/index.ts';
import { type Pusher, type PusherSettings, toPusher } from './pusher.ts';
import type { PusherTables } from './tables.ts';

type AnyReader = Reader<PusherTables>;
type AnyWriter = Writer<PusherTables>;

/** The pushers of users, in the order in which they were added. @param userIds at most 30,000 */
export async function readPushers(reader: AnyReader, userIds: readonly string[]): Promise<Pusher[]> {
  if (userIds.length === 0) return [];
  const rows = await reader
    .selectFrom('pushers')
    .selectAll()
    .where('user_id', 'in', userIds)
    .orderBy('id')
    .execute();
  return rows.map(toPusher);
}

export async function readPusher(reader: AnyReader, id: number): Promise<Pusher | undefined> {
  const row = await reader.selectFrom('pushers').selectAll().where('id', '=', id).executeTakeFirst();
  return row && toPusher(row);
}

/** The users who have pushers. */
export async function readUsersWithPushers(reader: AnyReader): Promise<string[]> {
  const rows = await reader.selectFrom('pushers').select('user_id').distinct().execute();
  return rows.map(({ user_id }) => user_id);
}

/** Adds a pusher, or replaces the settings of the user's pusher with the same `app_id` and `pushkey`. */
export async function writePusher(
  writer: AnyWriter,
  owner: { readonly userId: string; readonly deviceId: string | undefined; readonly setAt: number },
  settings: PusherSettings,
): Promise<void> {
  const changing = {
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
  };
  const { appId: app_id, pushkey } = settings;
  const key = { user_id: owner.userId, app_id, pushkey };
  // The database assigns the id.
  const row = { ...key, ...changing, badge: null } as Insertable<PusherTables['pushers']>;
  await writer
    .insertInto('pushers')
    .values(row)
    .onConflict((conflict) => conflict.columns(['user_id', 'app_id', 'pushkey']).doUpdateSet(changing))
    .execute();
}

/** Finds pushers by `app_id` and `pushkey`. */
export async function findPushers(
  reader: AnyReader,
  { appId, pushkey }: Pick<PusherSettings, 'appId' | 'pushkey'>,
): Promise<Pick<Pusher, 'id' | 'userId'>[]> {
  const rows = await reader
    .selectFrom('pushers')
    .select(['id', 'user_id'])
    .where('pushkey', '=', pushkey)
    .where('app_id', '=', appId)
    .execute();
  return rows.map((row) => ({ id: row.id, userId: row.user_id }));
}

/** Deletes pushers with all that is pending for them. */
export async function deletePushers(writer: AnyWriter, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return;
  await writer.deleteFrom('pushers').where('id', 'in', ids).execute();
  for (const table of ['pending_pushes', 'mail_throttles'] as const) {
    await writer.deleteFrom(table).where('pusher_id', 'in', ids).execute();
  }
}
