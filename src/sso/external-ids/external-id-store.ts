import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { SsoTables } from '../tables.ts';

/** A user of an identity provider. */
export interface ExternalId {
  /** The id of the configured provider: `saml`, `cas`, `oidc`, or `oidc-` and the `idp_id`. */
  readonly provider: string;
  /** The id of the user at the provider. */
  readonly externalId: string;
  /** Entity id of the SAML identity provider that has authenticated the user. */
  readonly issuer?: string | undefined;
}

/** An account, and the identity provider that has authenticated its user. */
export interface LinkedAccount {
  readonly userId: string;
  /** `undefined` when it is unknown. */
  readonly issuer: string | undefined;
}

/** Returns the account of an external id; `undefined` when no account has it. */
export async function findAccountOf(
  reader: Reader<SsoTables>,
  { provider, externalId }: ExternalId,
): Promise<LinkedAccount | undefined> {
  const row = await reader
    .selectFrom('external_ids')
    .select(['user_id', 'issuer'])
    .where('auth_provider', '=', provider)
    .where('external_id', '=', externalId)
    .executeTakeFirst();
  return row && { userId: row.user_id, issuer: row.issuer ?? undefined };
}

/** Returns the external ids of a user, ordered by provider and id. */
export async function externalIdsOf(reader: Reader<SsoTables>, userId: string): Promise<ExternalId[]> {
  const rows = await reader
    .selectFrom('external_ids')
    .select(['auth_provider', 'external_id'])
    .where('user_id', '=', userId)
    .orderBy('auth_provider')
    .orderBy('external_id')
    .execute();
  return rows.map((row) => ({ provider: row.auth_provider, externalId: row.external_id }));
}

/** Inserts an external id unless it belongs to a user. @returns whether it was inserted */
export async function insertExternalId(
  writer: Writer<SsoTables>,
  userId: string,
  { provider, externalId, issuer }: ExternalId,
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await writer
    .insertInto('external_ids')
    .values({ auth_provider: provider, external_id: externalId, user_id: userId, issuer: issuer ?? null })
    .onConflict((conflict) => conflict.columns(['auth_provider', 'external_id']).doNothing())
    .executeTakeFirst();
  return (numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** Deletes an external id of an account. */
export async function deleteExternalId(
  writer: Writer<SsoTables>,
  userId: string,
  { provider, externalId }: ExternalId,
): Promise<void> {
  await writer
    .deleteFrom('external_ids')
    .where('user_id', '=', userId)
    .where('auth_provider', '=', provider)
    .where('external_id', '=', externalId)
    .execute();
}

/** Stores which identity provider has authenticated the user of an external id, unless one is stored already. */
export async function setIssuerOf(
  writer: Writer<SsoTables>,
  { provider, externalId }: ExternalId,
  issuer: string,
): Promise<void> {
  await writer
    .updateTable('external_ids')
    .set({ issuer })
    .where('auth_provider', '=', provider)
    .where('external_id', '=', externalId)
    .where('issuer', 'is', null)
    .execute();
}

/**
 * Changes an external id of an identity provider.
 * @returns the user id of the account; `undefined` when no account has the external id from this identity provider
 */
export async function renameExternalId(
  writer: Writer<SsoTables>,
  { provider, externalId, issuer }: ExternalId & { readonly issuer: string },
  to: string,
): Promise<string | undefined> {
  const row = await writer
    .updateTable('external_ids')
    .set({ external_id: to })
    .where('auth_provider', '=', provider)
    .where('external_id', '=', externalId)
    .where('issuer', '=', issuer)
    .returning('user_id')
    .executeTakeFirst();
  return row?.user_id;
}
