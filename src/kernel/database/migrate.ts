import { StartFailure } from '../start-failure.ts';
import type { Database, DatabaseKind, Migration, SchemaBuilder } from './database.ts';
import { hasTable } from './transfer/move-marks.ts';

type Schema = { schema_migrations: { name: string; applied_ts: number } };

/** The database was migrated by a newer version of the program. */
export class NewerDatabase extends StartFailure {
  override name = 'NewerDatabase';
}

/**
 * Applies missing `migrations` in order, each in a transaction. Several processes may do so at the same time.
 * @throws NewerDatabase when the database contains a migration that is not listed
 */
export async function migrate(
  database: Database,
  migrations: readonly Migration[],
  now: () => number = Date.now,
): Promise<void> {
  requireUniqueNames(migrations);
  await database.changeSchema(createTable);
  const applied = new Set(await database.changeSchema(appliedNames));
  requireKnown(applied, migrations);
  for (const migration of migrations) {
    if (!applied.has(migration.name))
      await database.changeSchema((schema) => apply(schema, migration, now()));
  }
}

/** Returns the names of the migrations that were applied; none for a database that was never migrated. */
export async function appliedMigrations(database: Database, kind: DatabaseKind): Promise<string[]> {
  if (!(await hasTable(database, kind, 'schema_migrations'))) return [];
  const rows = await database.reader<Schema>().selectFrom('schema_migrations').select('name').execute();
  return rows.map(({ name }) => name);
}

async function apply(schema: SchemaBuilder, migration: Migration, now: number): Promise<void> {
  // Another process may have applied it since the names were read.
  if ((await appliedNames(schema)).includes(migration.name)) return;
  await migration.up(schema);
  await schema.db
    .withTables<Schema>()
    .insertInto('schema_migrations')
    .values({ name: migration.name, applied_ts: now })
    .execute();
}

async function createTable({ db, clustered }: SchemaBuilder): Promise<void> {
  await clustered(
    db.schema
      .createTable('schema_migrations')
      .ifNotExists()
      .addColumn('name', 'text', (column) => column.primaryKey())
      .addColumn('applied_ts', 'bigint', (column) => column.notNull()),
  ).execute();
}

async function appliedNames({ db }: SchemaBuilder): Promise<string[]> {
  const rows = await db.withTables<Schema>().selectFrom('schema_migrations').select('name').execute();
  return rows.map(({ name }) => name);
}

function requireUniqueNames(migrations: readonly Migration[]): void {
  const names = new Set<string>();
  for (const { name } of migrations) {
    if (names.has(name)) throw new Error(`two migrations have the name ${name}`);
    names.add(name);
  }
}

function requireKnown(applied: ReadonlySet<string>, migrations: readonly Migration[]): void {
  const known = new Set(migrations.map(({ name }) => name));
  const unknown = [...applied].filter((name) => !known.has(name)).sort();
  if (unknown.length === 0) return;
  throw new NewerDatabase(
    `the database was migrated by a newer version of Hearth, which applied ${unknown.join(', ')}; ` +
      'start that version, or restore a backup from before the upgrade',
  );
}
