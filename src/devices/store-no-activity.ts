import { type AnyWriter, writerFor } from '../kernel/database/index.ts';
import type { DeviceTables } from './tables.ts';

/** Stores, in the transaction that creates an account, that its user has not used a device yet. */
export async function storeNoActivity(writer: AnyWriter, userId: string): Promise<void> {
  await writerFor<DeviceTables>(writer)
    .insertInto('user_activity')
    .values({ user_id: userId, last_seen_at: 0 })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}
