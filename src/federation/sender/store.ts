import type { Writer } from '../../kernel/database/index.ts';
import type { SenderTables } from './tables.ts';

/** Rows to a statement: five values each, far below what a statement may bind. */
const rowsAtOnce = 2_000;

export async function insertOutgoing(
  writer: Writer<SenderTables>,
  rows: readonly SenderTables['federation_outbox'][],
): Promise<void> {
  for (let start = 0; start < rows.length; start += rowsAtOnce) {
    await writer
      .insertInto('federation_outbox')
      .values(rows.slice(start, start + rowsAtOnce))
      .execute();
  }
}
