import { type Database, migrate } from '../kernel/database/index.ts';
import { skipAssignedNumbers } from '../kernel/streams/index.ts';
import { stateGroupIds } from '../room-engine/index.ts';
import { migrations, slices } from '../slices.ts';

/**
 * Prepares a database that was restored from a backup: clients and other servers know numbers that were assigned after
 * the backup. Their sync tokens are accepted, and no number is assigned twice.
 * @throws NewerDatabase when the backup is of a newer version of Hearth
 */
export async function finishRestore(database: Database, now: () => number): Promise<void> {
  await migrate(database, migrations, now);
  const restored = slices.flatMap((slice) => slice.afterRestore ?? []);
  await database.transaction(async (writer) => {
    await skipAssignedNumbers(
      writer,
      restored.flatMap(({ sequences = [] }) => sequences),
    );
    for (const { change } of restored) await change?.(writer);
  });
}

/**
 * Prepares the separate database of state groups, where there is one. It may have been restored from an older backup
 * than the main database, whose events may refer to newer state groups: the ids of these must not be assigned again.
 */
export async function finishRestoreOfState(database: Database): Promise<void> {
  await database.transaction((writer) => skipAssignedNumbers(writer, [stateGroupIds]));
}
