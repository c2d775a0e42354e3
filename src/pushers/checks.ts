import { type DatabaseCheck, rowsCheck } from '../kernel/database/index.ts';

/** Makes a check that finds the rows of a table whose pushers do not exist. */
const orphanedRowsCheck = (table: string): DatabaseCheck =>
  rowsCheck({
    problem: `rows of ${table} for pushers that do not exist`,
    select: `select pusher_id as subject from ${table} t
      where not exists (select 1 from pushers p where p.id = t.pusher_id)`,
    mend: `delete from ${table} where not exists (select 1 from pushers p where p.id = ${table}.pusher_id)`,
  });

/** Checks of the consistency of the tables of pushers, for `hearth database check`. */
export const pusherChecks: readonly DatabaseCheck[] = [
  orphanedRowsCheck('pending_pushes'),
  orphanedRowsCheck('mail_throttles'),
];
