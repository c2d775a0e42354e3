import type { Selectable } from 'kysely';
import type { Reader, Writer } from '../kernel/database/index.ts';
import type { AccountTables } from './tables.ts';

/** An account of this server. */
export interface User {
  readonly userId: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly userType: string | undefined;
  /** Id of the application service that created the account. */
  readonly appservice: string | undefined;
  readonly hasPassword: boolean;
  readonly isGuest: boolean;
  readonly isAdmin: boolean;
  readonly isDeactivated: boolean;
  /** Whether the account was deactivated with `erase`: the user's events are hidden from users who join later. */
  readonly isErased: boolean;
  readonly isLocked: boolean;
  readonly isSuspended: boolean;
  /** Whether the user's events are accepted and not sent. */
  readonly isShadowBanned: boolean;
}

/** A user with the password hash. */
export interface UserSecrets {
  readonly user: User;
  readonly passwordHash: string | undefined;
}

/** An account to insert. */
export interface NewUser {
  readonly userId: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly passwordHash: string | undefined;
  readonly userType: string | undefined;
  readonly appservice: string | undefined;
  readonly isGuest: boolean;
  readonly isAdmin: boolean;
  readonly isShadowBanned: boolean;
}

/** Flags that may change after registration, by column. */
export type UserFlags = Partial<
  Pick<
    Selectable<AccountTables['users']>,
    'is_admin' | 'is_deactivated' | 'is_erased' | 'is_locked' | 'is_suspended' | 'is_shadow_banned'
  >
>;

const fold = (userId: string) => userId.toLowerCase();

function toSecrets(row: Selectable<AccountTables['users']>): UserSecrets {
  const user = {
    userId: row.user_id,
    createdAt: row.created_at,
    userType: row.user_type ?? undefined,
    appservice: row.appservice_id ?? undefined,
    hasPassword: row.password_hash !== null,
    isGuest: row.is_guest === 1,
    isAdmin: row.is_admin === 1,
    isDeactivated: row.is_deactivated === 1,
    isErased: row.is_erased === 1,
    isLocked: row.is_locked === 1,
    isSuspended: row.is_suspended === 1,
    isShadowBanned: row.is_shadow_banned === 1,
  };
  return { user, passwordHash: row.password_hash ?? undefined };
}

/** Returns the account with a user id, also a deactivated one. */
export async function readUser(reader: Reader<AccountTables>, userId: string): Promise<User | undefined> {
  const row = await reader.selectFrom('users').selectAll().where('user_id', '=', userId).executeTakeFirst();
  return row && toSecrets(row).user;
}

/**
 * Returns the account with the user id. If there is none, returns the account whose user id differs only in case;
 * `undefined` when there is no such account, or more than one.
 */
export async function readUserForLogin(
  reader: Reader<AccountTables>,
  userId: string,
): Promise<UserSecrets | undefined> {
  const rows = await reader.selectFrom('users').selectAll().where('folded_id', '=', fold(userId)).execute();
  const row =
    rows.find((candidate) => candidate.user_id === userId) ?? (rows.length === 1 ? rows[0] : undefined);
  return row && toSecrets(row);
}

/** Whether an account has the user id, or one that differs from it only in case. */
export async function isTaken(reader: Reader<AccountTables>, userId: string): Promise<boolean> {
  const row = await reader
    .selectFrom('users')
    .select('user_id')
    .where('folded_id', '=', fold(userId))
    .executeTakeFirst();
  return row !== undefined;
}

/** @returns whether the id was free */
export async function insertUser(writer: Writer<AccountTables>, user: NewUser): Promise<boolean> {
  const result = await writer
    .insertInto('users')
    .values({
      user_id: user.userId,
      folded_id: fold(user.userId),
      created_at: user.createdAt,
      password_hash: user.passwordHash ?? null,
      user_type: user.userType ?? null,
      appservice_id: user.appservice ?? null,
      is_guest: user.isGuest ? 1 : 0,
      is_admin: user.isAdmin ? 1 : 0,
      is_deactivated: 0,
      is_erased: 0,
      is_locked: 0,
      is_suspended: 0,
      is_shadow_banned: user.isShadowBanned ? 1 : 0,
    })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** @returns whether the user exists */
export async function updateUser(
  writer: Writer<AccountTables>,
  userId: string,
  change: UserFlags & { password_hash?: string | null; user_type?: string | null },
): Promise<boolean> {
  const result = await writer
    .updateTable('users')
    .set(change)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/**
 * Replaces a password hash by a new hash of the same password.
 * @returns false when the stored hash is not `former`; then nothing is changed
 */
export async function replacePasswordHash(
  writer: Writer<AccountTables>,
  userId: string,
  former: string,
  renewed: string,
): Promise<boolean> {
  const result = await writer
    .updateTable('users')
    .set({ password_hash: renewed })
    .where('user_id', '=', userId)
    .where('password_hash', '=', former)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/**
 * Reports whether an account is still active, and has the password hash if one is given. Writes the row of the account,
 * so that a transaction that deactivates the account or changes the password cannot run at the same time.
 */
export async function isStillActive(
  writer: Writer<AccountTables>,
  userId: string,
  passwordHash?: string,
): Promise<boolean> {
  let update = writer
    .updateTable('users')
    .set({ is_deactivated: 0 })
    .where('user_id', '=', userId)
    .where('is_deactivated', '=', 0);
  if (passwordHash !== undefined) update = update.where('password_hash', '=', passwordHash);
  const result = await update.executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

export interface GuestToUpgrade {
  readonly userId: string;
  /** Made by `PasswordHasher`. */
  readonly passwordHash: string;
  /** Whether to shadow-ban the user; a user who is shadow-banned already stays so. */
  readonly isShadowBanned: boolean;
}

/** @returns whether the guest exists */
export async function upgradeGuest(
  writer: Writer<AccountTables>,
  { userId, passwordHash, isShadowBanned }: GuestToUpgrade,
): Promise<boolean> {
  const result = await writer
    .updateTable('users')
    .set({
      is_guest: 0,
      password_hash: passwordHash,
      ...(isShadowBanned && { is_shadow_banned: 1 }),
    })
    .where('user_id', '=', userId)
    .where('is_guest', '=', 1)
    .where('is_deactivated', '=', 0)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}
