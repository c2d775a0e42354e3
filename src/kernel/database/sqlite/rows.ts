import type { Outcome, Row } from '../queries.ts';
import type { Table } from './connection.ts';

/** Converts a result with rows as arrays into one with rows as objects. */
export function outcomeOf({ columns, rows, changes }: Table): Outcome {
  if (columns.length === 0) return { rows: [], changes };
  return { rows: rows.map((values) => rowOf(columns, values)), changes };
}

function rowOf(columns: readonly string[], values: readonly unknown[]): Row {
  const row: Row = {};
  for (let index = 0; index < columns.length; index += 1) row[columns[index]!] = values[index];
  return row;
}
