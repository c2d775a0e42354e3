import { sql } from 'kysely';
import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { AccountTables } from '../tables.ts';

/** A registration token, as the admin API describes it. */
export interface RegistrationToken {
  readonly token: string;
  /** Maximum number of accounts that may be registered with the token; null for any number. */
  readonly uses_allowed: number | null;
  /** Number of registrations that have begun with the token and are not complete. */
  readonly pending: number;
  /** Number of accounts that were registered with the token. */
  readonly completed: number;
  /** Milliseconds since the epoch; null when the token does not expire. */
  readonly expiry_time: number | null;
}

/** The limits of a token, which an administrator sets. */
export type TokenLimits = Pick<RegistrationToken, 'uses_allowed' | 'expiry_time'>;

/**
 * Reads tokens in the order of their text. Registrations count as pending while their sessions of interactive
 * authentication exist.
 * @param sessionsSince sessions that began earlier have expired
 * @param onlyToken the only token to read; all tokens when absent
 */
export async function readTokens(
  reader: Reader<AccountTables>,
  sessionsSince: number,
  onlyToken?: string,
): Promise<RegistrationToken[]> {
  let query = reader.selectFrom('registration_tokens').select((tokens) => [
    'token',
    'uses_allowed',
    'completed',
    'expiry_time',
    tokens
      .selectFrom('interactive_sessions')
      .select(({ fn }) => fn.countAll<number>().as('sessions'))
      .whereRef('interactive_sessions.registration_token', '=', 'registration_tokens.token')
      .where('interactive_sessions.created_at', '>=', sessionsSince)
      .as('pending'),
  ]);
  if (onlyToken !== undefined) query = query.where('token', '=', onlyToken);
  const rows = await query.orderBy('token').execute();
  return rows.map((row) => ({ ...row, pending: Number(row.pending ?? 0) }));
}

/**
 * Locks a token by an update that changes nothing. When two transactions lock a token at the same time, the database
 * makes one of them start again, so that this transaction reads the uses again.
 */
export async function lockToken(writer: Writer<AccountTables>, token: string): Promise<void> {
  await writer
    .updateTable('registration_tokens')
    .set(({ ref }) => ({ completed: ref('completed') }))
    .where('token', '=', token)
    .execute();
}

/** Inserts a token, unless one with the same text exists. @returns whether the token was inserted */
export async function insertToken(
  writer: Writer<AccountTables>,
  token: string,
  limits: TokenLimits,
): Promise<boolean> {
  const result = await writer
    .insertInto('registration_tokens')
    .values({ token, ...limits, completed: 0 })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** Changes limits of a token; absent limits stay as they are. */
export async function updateToken(
  writer: Writer<AccountTables>,
  token: string,
  limits: Partial<TokenLimits>,
): Promise<void> {
  await writer.updateTable('registration_tokens').set(limits).where('token', '=', token).execute();
}

/** @returns whether the token existed */
export async function deleteToken(writer: Writer<AccountTables>, token: string): Promise<boolean> {
  const result = await writer.deleteFrom('registration_tokens').where('token', '=', token).executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** Returns the registration token that has a use reserved for the session. */
export async function reservedToken(
  reader: Reader<AccountTables>,
  idHash: string,
): Promise<string | undefined> {
  const row = await reader
    .selectFrom('interactive_sessions')
    .select('registration_token')
    .where('id_hash', '=', idHash)
    .executeTakeFirst();
  return row?.registration_token ?? undefined;
}

/** Reserves a use of a token for a session; null releases the use. */
export async function reserveToken(
  writer: Writer<AccountTables>,
  idHash: string,
  token: string | null,
): Promise<void> {
  await writer
    .updateTable('interactive_sessions')
    .set({ registration_token: token })
    .where('id_hash', '=', idHash)
    .execute();
}

export async function countUse(writer: Writer<AccountTables>, token: string): Promise<void> {
  await writer
    .updateTable('registration_tokens')
    .set({ completed: sql<number>`completed + 1` })
    .where('token', '=', token)
    .execute();
}
