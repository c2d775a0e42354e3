import { sql } from 'kysely';
import { type DatabaseEnvironment, type DatabaseOptions, openDatabase } from './open.ts';

type PostgresOptions = Extract<DatabaseOptions, { kind: 'postgres' }>;

/**
 * Takes a snapshot of a PostgreSQL database and holds it while `work` runs, so that `pg_dump --snapshot` can use it.
 * @param work receives the id of the snapshot
 */
export async function withSnapshot<T>(
  options: PostgresOptions,
  environment: DatabaseEnvironment,
  work: (snapshot: string) => Promise<T>,
): Promise<T> {
  const database = await openDatabase({ ...options, idleLimit: Number.POSITIVE_INFINITY }, environment);
  try {
    return await database.transaction(async (writer) => {
      const { rows } = await sql<{ id: string }>`select pg_export_snapshot() as id`.execute(writer);
      const [row] = rows;
      if (!row) throw new Error('PostgreSQL has exported no snapshot');
      return work(row.id);
    });
  } finally {
    await database.close();
  }
}
