import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { UserPushRules } from '../../protocol/index.ts';
import type { PushTables } from '../tables.ts';

/** What is stored of a user's rules. */
export interface StoredRules {
  readonly rules: UserPushRules;
  /** Where they changed last. */
  readonly position: number;
}

/** `undefined` for users who never changed their rules. */
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
 * Writes rules that were made from those at position `before`, `undefined` if there were none.
 * @returns whether they were; not when somebody else has changed them since
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
