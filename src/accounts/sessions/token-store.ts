import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { AccountTables } from '../tables.ts';

/** An access token with the rights of its owner. */
export interface AccessTokenRow {
  readonly id: number;
  readonly user_id: string;
  readonly device_id: string | null;
  readonly replaces_refresh_token_id: number | null;
  readonly expires_at: number | null;
  readonly confirmed_at: number;
  readonly is_guest: number;
  readonly is_admin: number;
  readonly is_deactivated: number;
  readonly is_locked: number;
  readonly is_suspended: number;
}

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
    ])
    .select(['u.is_guest', 'u.is_admin', 'u.is_deactivated', 'u.is_locked', 'u.is_suspended'])
    .where('t.hash', '=', hash)
    .executeTakeFirst();
}

/** A refresh token with the state of its owner. */
export type RefreshTokenRow = AccountTables['refresh_tokens'] &
  Pick<AccountTables['users'], 'is_deactivated' | 'is_locked'>;

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

export async function insertAccessToken(
  writer: Writer<AccountTables>,
  row: AccountTables['access_tokens'],
): Promise<void> {
  await writer.insertInto('access_tokens').values(row).execute();
}

export async function insertRefreshToken(
  writer: Writer<AccountTables>,
  row: AccountTables['refresh_tokens'],
): Promise<void> {
  await writer.insertInto('refresh_tokens').values(row).execute();
}

/** Revokes the tokens that a refresh replaced, because a new token has been used. */
export async function revokeReplaced(writer: Writer<AccountTables>, replaced: number): Promise<void> {
  await writer.deleteFrom('access_tokens').where('refresh_token_id', '=', replaced).execute();
  await writer.deleteFrom('refresh_tokens').where('id', '=', replaced).execute();
  await writer
    .updateTable('access_tokens')
    .set({ replaces_refresh_token_id: null })
    .where('replaces_refresh_token_id', '=', replaced)
    .execute();
  await writer
    .updateTable('refresh_tokens')
    .set({ replaces_id: null })
    .where('replaces_id', '=', replaced)
    .execute();
}

export async function deleteAccessToken(writer: Writer<AccountTables>, id: number): Promise<void> {
  await writer.deleteFrom('access_tokens').where('id', '=', id).execute();
}

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
 * Deletes the tokens of a user, also those without a device, except the access token of `kept` and the
 * refresh tokens of its device.
 */
export async function deleteTokensOfUser(
  writer: Writer<AccountTables>,
  userId: string,
  kept?: { tokenId: number | undefined; deviceId: string | undefined },
): Promise<void> {
  await writer
    .deleteFrom('access_tokens')
    .where('user_id', '=', userId)
    .where('id', '!=', kept?.tokenId ?? 0)
    .execute();
  await writer
    .deleteFrom('refresh_tokens')
    .where('user_id', '=', userId)
    .where('device_id', '!=', kept?.deviceId ?? '')
    .execute();
}

export async function deleteExpiredTokens(writer: Writer<AccountTables>, before: number): Promise<void> {
  for (const table of ['access_tokens', 'refresh_tokens'] as const) {
    await writer.deleteFrom(table).where('expires_at', '<', before).execute();
  }
}

export async function markConfirmed(writer: Writer<AccountTables>, id: number, at: number): Promise<void> {
  await writer.updateTable('access_tokens').set({ confirmed_at: at }).where('id', '=', id).execute();
}

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
