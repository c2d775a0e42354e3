import { type Randomness, randomLetters } from '../../randomness.ts';
import { StartFailure } from '../../start-failure.ts';
import type { Database, Migration, SchemaBuilder } from '../database.ts';
import { appliedMigrations } from '../migrate.ts';
import { hasTable, idLetters } from './move-marks.ts';
import type { TransferDatabase } from './transfer-database.ts';

/**
 * The mark that each database has on a server with two databases. The option `databases` of this server puts the data
 * store `state` (the state groups) into one database, and the data store `main` (all other data) into the other one.
 */
export interface StoreMark {
  readonly store: 'main' | 'state';
  /** Random; the same in both databases of a server, so that databases of different servers are never used together. */
  readonly setId: string;
}

type MarkTables = { data_stores: { store: string; set_id: string } };

export const storesMigration: Migration = { name: 'database/0003-data-stores', up: createTable };

/** Creates the table if it is missing: databases are marked before they are migrated. */
async function createTable({ db }: SchemaBuilder): Promise<void> {
  await db.schema
    .createTable('data_stores')
    .ifNotExists()
    .addColumn('store', 'text', (column) => column.primaryKey())
    .addColumn('set_id', 'text', (column) => column.notNull())
    .execute();
}

/** Reads the mark of a database; `undefined` for a database with all data of a server, and for an empty one. */
export async function readStoreMark({ database, kind }: TransferDatabase): Promise<StoreMark | undefined> {
  if (!(await hasTable(database, kind, 'data_stores'))) return undefined;
  const row = await database.reader<MarkTables>().selectFrom('data_stores').selectAll().executeTakeFirst();
  return row && { store: row.store as StoreMark['store'], setId: row.set_id };
}

/** Writes or replaces the mark of a database. Creates the table of a new database in the same transaction. */
export async function writeStoreMark(database: Database, { store, setId }: StoreMark): Promise<void> {
  await database.changeSchema(async (schema) => {
    await createTable(schema);
    await schema.db
      .withTables<MarkTables>()
      .insertInto('data_stores')
      .values({ store, set_id: setId })
      .onConflict((conflict) => conflict.column('store').doUpdateSet({ set_id: setId }))
      .execute();
  });
}

/** Removes the mark of a database that has become the only database of its server again. */
export async function removeStoreMark(database: Database): Promise<void> {
  await database.transaction<MarkTables, void>(async (writer) => {
    await writer.deleteFrom('data_stores').execute();
  });
}

/**
 * Makes sure that the databases of a configuration belong to one server, and marks new ones. Must be called before the
 * databases are migrated.
 * @param state the database of state groups; absent when `main` has everything
 * @throws StartFailure when the databases do not belong together, or `main` is only one of a server's two databases
 */
export async function requireStores(
  main: TransferDatabase,
  state: TransferDatabase | undefined,
  randomness: Randomness,
): Promise<void> {
  const mainMark = await readStoreMark(main);
  if (!state) {
    if (mainMark) throw new StartFailure(incomplete(mainMark));
    return;
  }
  const stateMark = await readStoreMark(state);
  if (isPair(mainMark, stateMark)) return;
  if (mainMark || stateMark?.store === 'main') throw new StartFailure(mismatch);
  if ((await appliedMigrations(main.database, main.kind)).length > 0)
    throw new StartFailure(
      'the database of the data store main also has the state groups: move them with "hearth database split"',
    );
  // A start that was interrupted has marked only the database of state groups.
  if (!stateMark && (await appliedMigrations(state.database, state.kind)).length > 0)
    throw new StartFailure(mismatch);
  if (stateMark && (await hasGroups(state))) throw new StartFailure(mismatch);
  const setId = stateMark?.setId ?? randomLetters(randomness, idLetters);
  await writeStoreMark(state.database, { store: 'state', setId });
  await writeStoreMark(main.database, { store: 'main', setId });
}

/**
 * Makes sure that the databases of a configuration belong to one server, and changes nothing.
 * @param state the database of state groups; absent when `main` has everything
 * @throws StartFailure when the databases do not belong together, or `main` is only one of a server's two databases
 */
export async function requireMatchingStores(
  main: TransferDatabase,
  state: TransferDatabase | undefined,
): Promise<void> {
  const mainMark = await readStoreMark(main);
  if (!state) {
    if (mainMark) throw new StartFailure(incomplete(mainMark));
    return;
  }
  if (!isPair(mainMark, await readStoreMark(state))) throw new StartFailure(mismatch);
}

/** Whether the marks of two databases say that both belong to one server. */
export const isPair = (mainMark: StoreMark | undefined, stateMark: StoreMark | undefined): boolean =>
  mainMark?.store === 'main' && stateMark?.store === 'state' && mainMark.setId === stateMark.setId;

/** The error for two databases that are not a pair. */
export const mismatch =
  'the databases of the data stores main and state do not belong together: they are of different servers, or swapped';

const incomplete = ({ store }: StoreMark) =>
  `this database has only the data store ${store}: name the databases of both stores in the option databases`;

type Groups = { state_groups: { id: number } };

async function hasGroups({ database, kind }: TransferDatabase): Promise<boolean> {
  if (!(await hasTable(database, kind, 'state_groups'))) return false;
  const row = await database
    .reader<Groups>()
    .selectFrom('state_groups')
    .select('id')
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}
