import { StartFailure } from '../../start-failure.ts';
import type { Database, DatabaseKind, Migration, SchemaBuilder } from '../database.ts';

/**
 * The mark of a database on which no server may start. `incomplete`: `hearth database move` or `hearth database split` is
 * filling it. `restoring`: `hearth restore` is filling it. `moved`: its contents were moved to another database, which
 * servers use instead.
 */
export interface MoveMark {
  readonly state: 'incomplete' | 'restoring' | 'moved';
  /**
   * Identifies the operation; all databases that it marks have the same id. It is random for a move, and made of the
   * server name and the time of the backup for a restore. `hearth database split` and `hearth database join` use the
   * `setId` that the databases of the data stores `main` and `state` have in common (`StoreMark`).
   */
  readonly moveId: string;
  /** The other database or the directory of the backup: for messages, and to recognize a repeated move. */
  readonly other: string;
}

type MarkTables = {
  database_moves: { name: string; state: string; move_id: string; other: string; changed_ts: number };
};

/** The only row of the table. */
const rowName = 'move';

export const moveMigration: Migration = {
  name: 'database/0002-moves',
  up: createMarkTable,
};

/** Creates the table if it is missing: a target is marked before it is migrated. */
async function createMarkTable({ db }: SchemaBuilder): Promise<void> {
  await db.schema
    .createTable('database_moves')
    .ifNotExists()
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('move_id', 'text', (column) => column.notNull())
    .addColumn('other', 'text', (column) => column.notNull())
    .addColumn('changed_ts', 'bigint', (column) => column.notNull())
    .execute();
}

/** Reads the mark of a database, which may be one that was never migrated. */
export async function readMark(database: Database, kind: DatabaseKind): Promise<MoveMark | undefined> {
  if (!(await hasTable(database, kind, 'database_moves'))) return undefined;
  const row = await database
    .reader<MarkTables>()
    .selectFrom('database_moves')
    .select(['state', 'move_id', 'other'])
    .executeTakeFirst();
  return row && { state: row.state as MoveMark['state'], moveId: row.move_id, other: row.other };
}

/** Whether a table exists; the name is a plain identifier. */
export async function hasTable(database: Database, kind: DatabaseKind, name: string): Promise<boolean> {
  const reader = database.reader<Record<string, Record<string, unknown>>>();
  const found =
    kind === 'sqlite'
      ? reader.selectFrom('sqlite_schema').select('name').where('name', '=', name)
      : reader
          .selectFrom('pg_class')
          .select('relname as name')
          .where('relname', '=', name)
          .where('relkind', '=', 'r')
          .where(({ fn }) => fn('pg_table_is_visible', ['oid']));
  return (await found.executeTakeFirst()) !== undefined;
}

/** Number of random letters in the id of a move, and in the `setId` of a server with two databases: 114 bits. */
export const idLetters = 20;

/** Writes or replaces the mark of a database. Creates the table of a new database in the same transaction. */
export async function writeMark(database: Database, mark: MoveMark, now: number): Promise<void> {
  await database.changeSchema(async (schema) => {
    await createMarkTable(schema);
    const { state, moveId: move_id, other } = mark;
    const values = { state, move_id, other, changed_ts: now };
    await schema.db
      .withTables<MarkTables>()
      .insertInto('database_moves')
      .values({ name: rowName, ...values })
      .onConflict((conflict) => conflict.column('name').doUpdateSet(values))
      .execute();
  });
}

/** Removes the mark, so that servers can start on the database. */
export async function removeMark(database: Database): Promise<void> {
  await database.transaction<MarkTables, void>(async (writer) => {
    await writer.deleteFrom('database_moves').execute();
  });
}

/** @throws StartFailure when the database is one that no server may start on */
export async function requireUnmarked(database: Database, kind: DatabaseKind): Promise<void> {
  const mark = await readMark(database, kind);
  if (mark === undefined) return;
  throw new StartFailure(problems[mark.state](mark.other));
}

const problems: Readonly<Record<MoveMark['state'], (other: string) => string>> = {
  moved: (other) =>
    `this database was moved to ${other}, which the server uses now: name that database in the configuration`,
  restoring: (other) =>
    `this database is incomplete: its restore from ${other} was interrupted; call the same "hearth restore" again`,
  incomplete: (other) =>
    `this database is incomplete: finish "hearth database move" or "hearth database split" from ${other}, or start the server on ${other}`,
};
