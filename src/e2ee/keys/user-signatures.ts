import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { E2eeTables } from '../tables.ts';

/**
 * A user's signature of another user's master key. A row whose target is the same user
 * records only that the user-signing key has changed.
 */
export interface UserSignature {
  readonly targetUserId: string;
  /** The master key that was signed. */
  readonly targetKey: string;
  /** The user-signing key that signed, as `ed25519:<key>`. */
  readonly keyId: string;
  readonly signature: string;
}

/** Maximum number of users in one query. */
const chunkSize = 500;

/** Returns the signatures that a user has made on the master keys of other users. */
export async function readUserSignatures(
  reader: Reader<E2eeTables>,
  userId: string,
  targets: readonly string[],
): Promise<UserSignature[]> {
  const signatures: UserSignature[] = [];
  for (let start = 0; start < targets.length; start += chunkSize) {
    const rows = await reader
      .selectFrom('user_signatures')
      .selectAll()
      .where('user_id', '=', userId)
      .where('target_user_id', 'in', targets.slice(start, start + chunkSize))
      .execute();
    for (const row of rows) {
      const { target_user_id: targetUserId, target_key: targetKey, key_id: keyId, signature } = row;
      signatures.push({ targetUserId, targetKey, keyId, signature });
    }
  }
  return signatures;
}

/**
 * Stores a signature. It replaces an earlier signature of the same target, because only the signature by the current
 * keys counts.
 */
export async function writeUserSignature(
  writer: Writer<E2eeTables>,
  userId: string,
  { targetUserId, targetKey, keyId, signature }: UserSignature,
  position: number,
): Promise<void> {
  const columns = { target_key: targetKey, key_id: keyId, signature, position };
  await writer
    .insertInto('user_signatures')
    .values({ user_id: userId, target_user_id: targetUserId, ...columns })
    .onConflict((conflict) => conflict.columns(['user_id', 'target_user_id']).doUpdateSet(columns))
    .execute();
}

/**
 * Returns the ids of the users whose master keys a user has signed after a position, and the user's own id after a
 * change of the user-signing key.
 */
export async function usersSignedSince(
  reader: Reader<E2eeTables>,
  userId: string,
  after: number,
): Promise<string[]> {
  const rows = await reader
    .selectFrom('user_signatures')
    .select('target_user_id')
    .where('user_id', '=', userId)
    .where('position', '>', after)
    .execute();
  return rows.map((row) => row.target_user_id);
}

/** Deletes the signatures that a user has made, after the user has replaced the master key or the user-signing key. */
export async function deleteSignaturesBy(writer: Writer<E2eeTables>, userId: string): Promise<void> {
  await writer.deleteFrom('user_signatures').where('user_id', '=', userId).execute();
}

/** Deletes the signatures that other users made on a user's master key, after the user has replaced the master key. */
export async function deleteSignaturesOf(writer: Writer<E2eeTables>, userId: string): Promise<void> {
  await writer.deleteFrom('user_signatures').where('target_user_id', '=', userId).execute();
}
