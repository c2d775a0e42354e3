import { DatabaseSync } from 'node:sqlite';
import { Client } from 'pg';
import type { DatabaseOptions } from '../../../src/kernel/database/index.ts';
import { eventually } from '../../clients/eventually.ts';

type Row = Readonly<Record<string, unknown>>;

/** SQLITE_BUSY of https://sqlite.org/rescode.html. */
const sqliteBusy = 5;

/** Access to the database of a running server over another connection, as an external tool has it. */
export interface DatabaseContents {
  /** Returns the column names of all tables, by table. */
  columns(): Promise<ReadonlyMap<string, readonly string[]>>;
  rows(table: string): Promise<readonly Row[]>;
  /** Adds a row. @param row by column; all values are texts and numbers */
  insert(table: string, row: Readonly<Record<string, string | number>>): Promise<void>;
  close(): Promise<void>;
}

export async function openContents(options: DatabaseOptions): Promise<DatabaseContents> {
  return options.kind === 'sqlite' ? sqliteContents(options.path) : postgresContents(options);
}

function sqliteContents(path: string): DatabaseContents {
  const database = new DatabaseSync(path, { readOnly: true, timeout: 60_000 });
  const query = (sql: string) => {
    const statement = database.prepare(sql);
    statement.setReadBigInts(true);
    return statement.all() as Row[];
  };
  return {
    async columns() {
      const columns = query(
        `select m.name as "table", c.name as "column" from sqlite_master m join pragma_table_info(m.name) c
         where m.type = 'table' and m.sql not like 'create virtual%'`,
      );
      return columnsByTable(columns);
    },
    rows: async (table) => query(`select * from "${table}"`),
    async insert(table, row) {
      const writable = new DatabaseSync(path);
      const names = Object.keys(row);
      const values = names.map(() => '?').join(', ');
      const sql = `insert into "${table}" (${names.join(', ')}) values (${values})`;
      try {
        // SQLite's own timeout would block this thread, but the server's transaction must continue on it.
        await eventually('the lock of the database', () =>
          unlessLocked(() => writable.prepare(sql).run(...Object.values(row))),
        );
      } finally {
        writable.close();
      }
    },
    close: async () => database.close(),
  };
}

/** Returns the result of `write`, or `undefined` while another connection holds the lock of the database. */
function unlessLocked<T>(write: () => T): T | undefined {
  try {
    return write();
  } catch (error) {
    if ((error as { errcode?: number }).errcode === sqliteBusy) return undefined;
    throw error;
  }
}

async function postgresContents(
  options: Extract<DatabaseOptions, { kind: 'postgres' }>,
): Promise<DatabaseContents> {
  const { host, port, user, password, database } = options;
  const client = new Client({ host, port, user, password, database });
  await client.connect();
  const query = async (sql: string) => (await client.query<Row>(sql)).rows;
  return {
    async columns() {
      const columns = await query(
        `select table_name as "table", column_name as "column" from information_schema.columns
         where table_schema = current_schema()`,
      );
      return columnsByTable(columns);
    },
    rows: (table) => query(`select * from "${table}"`),
    async insert(table, row) {
      const names = Object.keys(row);
      const values = names.map((_, index) => `$${index + 1}`).join(', ');
      await client.query(
        `insert into "${table}" (${names.join(', ')}) values (${values})`,
        Object.values(row),
      );
    },
    close: () => client.end(),
  };
}

const columnsByTable = (rows: readonly Row[]): ReadonlyMap<string, readonly string[]> =>
  new Map(
    [...Map.groupBy(rows, ({ table }) => String(table))].map(([table, columns]) => [
      table,
      columns.map(({ column }) => String(column)),
    ]),
  );
