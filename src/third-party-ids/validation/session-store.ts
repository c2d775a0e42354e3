import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { ThirdPartyIdTables } from '../tables.ts';

export type SessionRow = ThirdPartyIdTables['validation_sessions'];
export type TokenRow = ThirdPartyIdTables['validation_tokens'];

/** Returns the session with an id; `undefined` when it is not stored. */
export function findSession(
  reader: Reader<ThirdPartyIdTables>,
  sid: string,
): Promise<SessionRow | undefined> {
  return reader.selectFrom('validation_sessions').selectAll().where('sid', '=', sid).executeTakeFirst();
}

/** Returns the pending session of a client for an address. */
export function findPending(
  reader: Reader<ThirdPartyIdTables>,
  wanted: Pick<SessionRow, 'medium' | 'address' | 'secret_hash' | 'purpose'>,
): Promise<SessionRow | undefined> {
  return reader
    .selectFrom('validation_sessions')
    .selectAll()
    .where('address', '=', wanted.address)
    .where('secret_hash', '=', wanted.secret_hash)
    .where('medium', '=', wanted.medium)
    .where('purpose', '=', wanted.purpose)
    .where('validated_at', 'is', null)
    .executeTakeFirst();
}

/** Inserts a session, or replaces the session with the same id. */
export async function saveSession(writer: Writer<ThirdPartyIdTables>, row: SessionRow): Promise<void> {
  const { sid: _, ...changed } = row;
  await writer
    .insertInto('validation_sessions')
    .values(row)
    .onConflict((conflict) => conflict.column('sid').doUpdateSet(changed))
    .execute();
}

/** Stores the token that was sent in a mail. */
export async function insertToken(writer: Writer<ThirdPartyIdTables>, row: TokenRow): Promise<void> {
  await writer.insertInto('validation_tokens').values(row).execute();
}

/** Returns the token of a session by its hash; `undefined` when the session has no such token. */
export function findToken(
  reader: Reader<ThirdPartyIdTables>,
  sid: string,
  tokenHash: string,
): Promise<TokenRow | undefined> {
  return reader
    .selectFrom('validation_tokens')
    .selectAll()
    .where('token_hash', '=', tokenHash)
    .where('sid', '=', sid)
    .executeTakeFirst();
}

/** Deletes all sessions of an address, and their tokens. */
export async function deleteValidationsOf(
  writer: Writer<ThirdPartyIdTables>,
  medium: string,
  address: string,
): Promise<void> {
  const rows = await writer
    .selectFrom('validation_sessions')
    .select('sid')
    .where('address', '=', address)
    .where('medium', '=', medium)
    .execute();
  await deleteSessions(
    writer,
    rows.map(({ sid }) => sid),
  );
}

/** Deletes expired sessions, at most `limit`. @returns how many */
export async function deleteExpired(
  writer: Writer<ThirdPartyIdTables>,
  now: number,
  limit: number,
): Promise<number> {
  const rows = await writer
    .selectFrom('validation_sessions')
    .select('sid')
    .where('expires_at', '<=', now)
    .orderBy('expires_at')
    .limit(limit)
    .execute();
  await deleteSessions(
    writer,
    rows.map(({ sid }) => sid),
  );
  return rows.length;
}

/** Deletes the sessions that exceed `max`, those that expire first; at most `limit` in one call. */
export async function deleteSurplus(
  writer: Writer<ThirdPartyIdTables>,
  max: number,
  limit: number,
): Promise<void> {
  const { count } = await writer
    .selectFrom('validation_sessions')
    .select((query) => query.fn.countAll().as('count'))
    .executeTakeFirstOrThrow();
  const surplus = Number(count) - max;
  if (surplus <= 0) return;
  const rows = await writer
    .selectFrom('validation_sessions')
    .select('sid')
    .orderBy('expires_at')
    .orderBy('sid')
    .limit(Math.min(surplus, limit))
    .execute();
  await deleteSessions(
    writer,
    rows.map(({ sid }) => sid),
  );
}

async function deleteSessions(writer: Writer<ThirdPartyIdTables>, sids: readonly string[]): Promise<void> {
  if (sids.length === 0) return;
  await writer.deleteFrom('validation_tokens').where('sid', 'in', sids).execute();
  await writer.deleteFrom('validation_sessions').where('sid', 'in', sids).execute();
}
