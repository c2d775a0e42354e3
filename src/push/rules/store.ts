import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { UserPushRules } from '../../protocol/index.ts';
import type { PushTables } from '../tables.ts';

/** The stored rules of a user. */
export interface StoredRules {
  readonly rules: UserPushRules;
  /** The position of the last change. */
  readonly position: number;
}

/** Reads the rules of a user; `undefined` for users who never changed them. */
export async function readRules(
  reader: Reader<PushTables>,
  userId: string,
): Promise<StoredRules | undefined> {
  const row = await reader
    .selectFrom('push_rules')
    .select(['rules', 'position'])
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return row && { rules: JSON.parse(row.rules) as UserPushRules, position: row.position };
}

/**
 * Writes rules that were computed from the stored rules.
 * @param before position of the stored rules; `undefined` if there were none
 * @returns false, without a change, when another writer has changed the stored rules in between
 */
export async function replaceRules(
  writer: Writer<PushTables>,
  userId: string,
  before: number | undefined,
  next: { readonly json: string; readonly position: number },
): Promise<boolean> {
  const content = { rules: next.json, position: next.position };
  if (before === undefined) {
    const inserted = await writer
      .insertInto('push_rules')
      .values({ user_id: userId, ...content })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst();
    return (inserted.numInsertedOrUpdatedRows ?? 0n) > 0n;
  }
  const updated = await writer
    .updateTable('push_rules')
    .set(content)
    .where('user_id', '=', userId)
    .where('position', '=', before)
    .executeTakeFirst();
  return updated.numUpdatedRows > 0n;
}
