import { afterCommit } from './after-commit.ts';
import type { AnyWriter } from './any-writer.ts';
import type { NumberBounds } from './number-bounds.ts';
import type { Execute } from './queries.ts';

/**
 * Runs the work of a transaction. Then raises, in the same transaction, the bounds of assigned numbers that are due.
 */
export async function raisingBounds<W extends AnyWriter, T>(
  bounds: NumberBounds,
  writer: W,
  execute: Execute,
  work: (writer: W) => Promise<T>,
): Promise<T> {
  const result = await work(writer);
  const due = bounds.due();
  if (due) {
    for (const row of due.statement.rows) await execute(due.statement.sql, row);
    afterCommit(writer, due.onDisk);
  }
  return result;
}
