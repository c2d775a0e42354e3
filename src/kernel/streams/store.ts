import type { AnyWriter } from '../database/any-writer.ts';
import { type Database, type Reader, writerFor } from '../database/database.ts';

/** The bounds of assigned numbers (`DurableBound`), and the cursors of followers. */
export interface PositionTables {
  number_bounds: { name: string; bound: number };
  stream_followers: { name: string; position: number };
}

/**
 * Raises a bound by `step` at the start of a process; the first process raises it from 0. Does so in one statement, so
 * that two processes never begin at the same number.
 * @returns the raised bound: the `step` numbers up to it were never assigned
 */
export function raiseBound(database: Database, name: string, step: number): Promise<number> {
  return database.transaction<PositionTables, number>(async (writer) => {
    const { bound } = await writer
      .insertInto('number_bounds')
      .values({ name, bound: step })
      .onConflict((conflict) =>
        conflict.column('name').doUpdateSet((eb) => ({ bound: eb('number_bounds.bound', '+', step) })),
      )
      .returning('bound')
      .executeTakeFirstOrThrow();
    return bound;
  });
}

/**
 * Numbers that a restored database skips: far more than were assigned since any backup, and few enough for tens of
 * thousands of restores.
 */
const skippedAfterRestore = 100_000_000_000;

/**
 * Makes stream positions and the sequences of these names continue far ahead, after a backup was restored: numbers
 * that were assigned after the backup are known to clients and other servers and must not be assigned again.
 */
export async function skipAssignedNumbers(writer: AnyWriter, sequences: readonly string[]): Promise<void> {
  await writerFor<PositionTables>(writer)
    .updateTable('number_bounds')
    .set((eb) => ({ bound: eb('bound', '+', skippedAfterRestore) }))
    .where('name', 'in', ['positions', ...sequences])
    .execute();
}

/** Reads the cursor of a follower; `undefined` when it has never run. */
export async function readCursor(reader: Reader<PositionTables>, name: string): Promise<number | undefined> {
  const row = await reader
    .selectFrom('stream_followers')
    .select('position')
    .where('name', '=', name)
    .executeTakeFirst();
  return row?.position;
}

/**
 * Deletes the cursor of a follower that does not run, so that its next start begins at the current position instead of
 * handling all facts in between.
 */
export async function forgetCursor(database: Database, name: string): Promise<void> {
  if ((await readCursor(database.reader<PositionTables>(), name)) === undefined) return;
  await database.transaction<PositionTables, void>(async (writer) => {
    await writer.deleteFrom('stream_followers').where('name', '=', name).execute();
  });
}

/** Stores the position up to which a follower has handled all facts. */
export function writeCursor(database: Database, name: string, position: number): Promise<void> {
  return database.transaction<PositionTables, void>(async (writer) => {
    await writer
      .insertInto('stream_followers')
      .values({ name, position })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ position }))
      .execute();
  });
}
