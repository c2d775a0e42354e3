import { type Database, migrate } from '../kernel/database/index.ts';
import { skipAssignedNumbers } from '../kernel/streams/index.ts';
import { stateGroupIds } from '../room-engine/index.ts';
import { migrations, slices } from '../slices.ts';

/**
 * Prepares a database that was restored from a backup. Clients and other servers know numbers that the server assigned
 * after the backup: a prepared server accepts sync tokens with such numbers, and assigns no number a second time.
 * @throws NewerDatabase when the backup is of a newer version of Hearth
 */
export async function finishRestore(database: Database, now: () => number): Promise<void> {
  await migrate(database, migrations, now);
  const declared = slices.flatMap((slice) => slice.afterDatabaseRestore ?? []);
  await database.transaction(async (writer) => {
    await skipAssignedNumbers(
      writer,
      declared.flatMap(({ sequences = [] }) => sequences),
    );
    for (const { change } of declared) await change?.(writer);
  });
}

/**
 * Prepares the separate database of state groups, where there is one. Its backup may be older than the backup of the
 * main database. Then events in the main database refer to state groups that are missing here, and the ids of the
 * missing groups must not be assigned a second time.
 */
export async function finishRestoreOfState(database: Database): Promise<void> {
  await database.transaction((writer) => skipAssignedNumbers(writer, [stateGroupIds]));
}
