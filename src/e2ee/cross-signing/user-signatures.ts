import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { E2eeTables } from '../tables.ts';

/** A user's signature of another user's master key. */
export interface UserSignature {
  readonly targetUserId: string;
  /** The master key that was signed. */
  readonly targetKey: string;
  /** The user-signing key that signed, as `ed25519:<key>`. */
  readonly keyId: string;
  readonly signature: string;
}

/** How many users one query names at most. */
const chunk = 500;

/** What a user has signed of other users. */
export async function readUserSignatures(
  reader: Reader<E2eeTables>,
  userId: string,
  targets: readonly string[],
): Promise<UserSignature[]> {
  const found: UserSignature[] = [];
  for (let start = 0; start < targets.length; start += chunk) {
    const rows = await reader
      .selectFrom('user_signatures')
      .selectAll()
      .where('user_id', '=', userId)
      .where('target_user_id', 'in', targets.slice(start, start + chunk))
      .execute();
    for (const row of rows) {
      const { target_user_id: targetUserId, target_key: targetKey, key_id: keyId, signature } = row;
      found.push({ targetUserId, targetKey, keyId, signature });
    }
  }
  return found;
}

/** Replaces the signature that the user made before: both have one key that counts. */
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

/** Whom a user has signed after a position. */
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

/** Deletes what was signed with a user-signing key that is no more. */
export async function deleteSignaturesBy(writer: Writer<E2eeTables>, userId: string): Promise<void> {
  await writer.deleteFrom('user_signatures').where('user_id', '=', userId).execute();
}

/** Deletes what others have signed of a master key that is no more. */
export async function deleteSignaturesOf(writer: Writer<E2eeTables>, userId: string): Promise<void> {
  await writer.deleteFrom('user_signatures').where('target_user_id', '=', userId).execute();
}
