import { type DatabaseCheck, rowsCheck } from './database-check.ts';

/** A column with numbers that the server assigns in memory, below a bound on disk (`number_bounds`). */
export interface AssignedNumbers {
  /** Name of the bound: `positions` for positions of streams, otherwise the name of a sequence. */
  readonly bound: string;
  readonly table: string;
  readonly column: string;
}

/**
 * Makes a check for each bound: numbers above the bound would be assigned a second time. Raising the bound repairs
 * this.
 */
export const numberChecks = (columns: readonly AssignedNumbers[]): DatabaseCheck[] =>
  [...Map.groupBy(columns, ({ bound }) => bound)].map(([bound, columnsOfBound]) => {
    const numbers = columnsOfBound
      .map(
        ({ table, column }) =>
          `select '${table}.${column}' as subject, coalesce(max(${column}), 0) as highest from ${table}`,
      )
      .join(' union all ');
    const known = `(select coalesce(max(bound), 0) from number_bounds where name = '${bound}')`;
    return rowsCheck({
      problem: `columns with numbers above the bound ${bound}: these numbers would be assigned twice`,
      select: `select subject from (${numbers}) numbers where highest > ${known}`,
      mend: `insert into number_bounds (name, bound) values ('${bound}', (select max(highest) from (${numbers}) numbers))
        on conflict (name) do update set bound = excluded.bound where number_bounds.bound < excluded.bound`,
    });
  });
