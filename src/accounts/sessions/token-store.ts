import type { Insertable } from 'kysely';
import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { AccountTables } from '../tables.ts';

/** An access token with the rights of its owner. */
export interface AccessTokenRow {
  readonly id: number;
  readonly user_id: string;
  readonly device_id: string | null;
  readonly replaces_refresh_token_id: number | null;
  readonly expires_at: number | null;
  /** When the user of this token last authenticated; 0 when that was before the token was issued. */
  readonly confirmed_at: number;
  readonly is_guest: number;
  readonly is_admin: number;
  readonly is_deactivated: number;
  readonly is_locked: number;
  readonly is_suspended: number;
  readonly is_shadow_banned: number;
  readonly issued_by: string | null;
}

/** Returns an access token by its hash, with the state of its account. */
export async function findAccessToken(
  reader: Reader<AccountTables>,
  hash: string,
): Promise<AccessTokenRow | undefined> {
  return await reader
    .selectFrom('access_tokens as t')
    .innerJoin('users as u', 'u.user_id', 't.user_id')
    .select([
      't.id',
      't.user_id',
      't.device_id',
      't.replaces_refresh_token_id',
      't.expires_at',
      't.confirmed_at',
      't.issued_by',
    ])
    .select([
      'u.is_guest',
      'u.is_admin',
      'u.is_deactivated',
      'u.is_locked',
      'u.is_suspended',
      'u.is_shadow_banned',
    ])
    .where('t.hash', '=', hash)
    .executeTakeFirst();
}

/** A refresh token with the state of its owner. */
export type RefreshTokenRow = AccountTables['refresh_tokens'] &
  Pick<AccountTables['users'], 'is_deactivated' | 'is_locked'>;

/** Returns a refresh token by its hash, with the state of its account. */
export async function findRefreshToken(
  reader: Reader<AccountTables>,
  hash: string,
): Promise<RefreshTokenRow | undefined> {
  return await reader
    .selectFrom('refresh_tokens as t')
    .innerJoin('users as u', 'u.user_id', 't.user_id')
    .selectAll('t')
    .select(['u.is_deactivated', 'u.is_locked'])
    .where('t.hash', '=', hash)
    .executeTakeFirst();
}

/** Inserts an access token. */
export async function insertAccessToken(
  writer: Writer<AccountTables>,
  row: Insertable<AccountTables['access_tokens']>,
): Promise<void> {
  await writer.insertInto('access_tokens').values(row).execute();
}

/** Inserts a refresh token. */
export async function insertRefreshToken(
  writer: Writer<AccountTables>,
  row: AccountTables['refresh_tokens'],
): Promise<void> {
  await writer.insertInto('refresh_tokens').values(row).execute();
}

/** A pair of tokens of a device, by the id of its refresh token. */
interface TokenPair {
  readonly userId: string;
  readonly deviceId: string;
  readonly refreshTokenId: number;
}

/**
 * Called when a token of the pair `used` is used. Revokes the pair with the refresh token `replaced`, which was exchanged
 * for `used`, and all other pairs that were issued in exchange for this refresh token.
 */
export async function revokeReplaced(
  writer: Writer<AccountTables>,
  { userId, deviceId, refreshTokenId: used }: TokenPair,
  replaced: number,
): Promise<void> {
  await writer
    .deleteFrom('access_tokens')
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .where((row) =>
      row.or([
        row('refresh_token_id', '=', replaced),
        row.and([row('replaces_refresh_token_id', '=', replaced), row('refresh_token_id', '!=', used)]),
      ]),
    )
    .execute();
  await writer
    .deleteFrom('refresh_tokens')
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .where((row) => row.or([row('id', '=', replaced), row('replaces_id', '=', replaced)]))
    .where('id', '!=', used)
    .execute();
  await writer
    .updateTable('access_tokens')
    .set({ replaces_refresh_token_id: null })
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .where('replaces_refresh_token_id', '=', replaced)
    .execute();
  await writer.updateTable('refresh_tokens').set({ replaces_id: null }).where('id', '=', used).execute();
}

/** Deletes all but the `maxKept` newest pairs that were issued in exchange for a refresh token. */
export async function deleteOlderPairs(
  writer: Writer<AccountTables>,
  { userId, deviceId, refreshTokenId }: TokenPair,
  maxKept: number,
): Promise<void> {
  const pairs = await writer
    .selectFrom('refresh_tokens')
    .select('id')
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .where('replaces_id', '=', refreshTokenId)
    .orderBy('created_at', 'desc')
    .execute();
  const older = pairs.slice(maxKept).map(({ id }) => id);
  if (older.length === 0) return;
  await writer
    .deleteFrom('access_tokens')
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .where('refresh_token_id', 'in', older)
    .execute();
  await writer.deleteFrom('refresh_tokens').where('id', 'in', older).execute();
}

/**
 * Returns the ids of two refresh tokens: the one that was issued with an access token, and the earlier one that was
 * exchanged for the pair; `undefined` when the access token has been revoked.
 */
export async function readRefreshTokenIds(
  reader: Reader<AccountTables>,
  id: number,
): Promise<
  Pick<AccountTables['access_tokens'], 'refresh_token_id' | 'replaces_refresh_token_id'> | undefined
> {
  return await reader
    .selectFrom('access_tokens')
    .select(['refresh_token_id', 'replaces_refresh_token_id'])
    .where('id', '=', id)
    .executeTakeFirst();
}

export async function deleteAccessToken(writer: Writer<AccountTables>, id: number): Promise<void> {
  await writer.deleteFrom('access_tokens').where('id', '=', id).execute();
}

/** Deletes all access tokens and refresh tokens of devices. */
export async function deleteTokensOfDevices(
  writer: Writer<AccountTables>,
  userId: string,
  deviceIds: readonly string[],
): Promise<void> {
  for (const table of ['access_tokens', 'refresh_tokens'] as const) {
    await writer
      .deleteFrom(table)
      .where('user_id', '=', userId)
      .where('device_id', 'in', deviceIds)
      .execute();
  }
}

/**
 * Deletes the tokens of a user, including tokens without a device. Keeps the tokens of administrators who act as the
 * user. Keeps the given access token, if any, and the refresh token that was issued with it.
 */
export async function deleteTokensOfUser(
  writer: Writer<AccountTables>,
  userId: string,
  keptTokenId?: number,
): Promise<void> {
  const keptIds = keptTokenId === undefined ? undefined : await readRefreshTokenIds(writer, keptTokenId);
  await writer
    .deleteFrom('access_tokens')
    .where('user_id', '=', userId)
    .where('issued_by', 'is', null)
    .where('id', '!=', keptTokenId ?? 0)
    .execute();
  await writer
    .deleteFrom('refresh_tokens')
    .where('user_id', '=', userId)
    .where('id', '!=', keptIds?.refresh_token_id ?? 0)
    .execute();
}

/** Deletes the tokens that let an administrator act as other users. @returns the ids of these users */
export async function deleteTokensIssuedBy(
  writer: Writer<AccountTables>,
  administrator: string,
): Promise<string[]> {
  const rows = await writer
    .deleteFrom('access_tokens')
    .where('issued_by', '=', administrator)
    .returning('user_id')
    .execute();
  return [...new Set(rows.map((row) => row.user_id))];
}

/** Deletes the tokens that let administrators act as a user. */
export async function deleteTokensIssuedFor(writer: Writer<AccountTables>, userId: string): Promise<void> {
  await writer
    .deleteFrom('access_tokens')
    .where('user_id', '=', userId)
    .where('issued_by', 'is not', null)
    .execute();
}

export async function deleteExpiredTokens(writer: Writer<AccountTables>, before: number): Promise<void> {
  for (const table of ['access_tokens', 'refresh_tokens'] as const) {
    await writer.deleteFrom(table).where('expires_at', '<', before).execute();
  }
}

/** Records when the user of an access token has authenticated again. */
export async function markConfirmed(writer: Writer<AccountTables>, id: number, at: number): Promise<void> {
  await writer.updateTable('access_tokens').set({ confirmed_at: at }).where('id', '=', id).execute();
}

/** Returns when the user last authenticated; 0 when that was before the access token was issued. */
export async function readConfirmedAt(
  reader: Reader<AccountTables>,
  id: number,
): Promise<number | undefined> {
  const row = await reader
    .selectFrom('access_tokens')
    .select('confirmed_at')
    .where('id', '=', id)
    .executeTakeFirst();
  return row?.confirmed_at;
}
