import type { Reader, Writer } from '../../kernel/database/index.ts';

/** The table of rate limit overrides. */
export interface LimitOverrideTables {
  rate_limit_overrides: { user_id: string; messages_per_second: number; burst_count: number };
}

/** An override for a user; a rate of 0 means no limits at all. */
export interface LimitOverride {
  /** The rate at which the user may send messages. */
  readonly messages_per_second: number;
  /** Number of messages that the user may send at once. */
  readonly burst_count: number;
}

/** Returns all overrides by user id. */
export async function readOverrides(
  reader: Reader<LimitOverrideTables>,
): Promise<Map<string, LimitOverride>> {
  const rows = await reader.selectFrom('rate_limit_overrides').selectAll().execute();
  return new Map(rows.map(({ user_id: userId, ...override }) => [userId, override]));
}

export async function writeOverride(
  writer: Writer<LimitOverrideTables>,
  userId: string,
  override: LimitOverride,
): Promise<void> {
  await writer
    .insertInto('rate_limit_overrides')
    .values({ user_id: userId, ...override })
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet({ ...override }))
    .execute();
}

export async function deleteOverride(writer: Writer<LimitOverrideTables>, userId: string): Promise<void> {
  await writer.deleteFrom('rate_limit_overrides').where('user_id', '=', userId).execute();
}
