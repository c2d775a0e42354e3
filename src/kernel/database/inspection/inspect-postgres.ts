import type { Logger } from '../../observability/logger.ts';
import { ConnectionPool } from '../postgres/connection-pool.ts';
import type { PostgresOptions } from '../postgres/options.ts';
import { FailedWithoutEffect } from '../postgres/retry.ts';
import type { Session } from '../postgres/session.ts';
import type { DatabaseFacts } from './database-facts.ts';

/**
 * Reads the facts of a PostgreSQL database with one connection; a server may be running on it.
 * @throws Error when it cannot be read; its `code` is the SQLSTATE or the error code of the operating system
 */
export async function inspectPostgres(options: PostgresOptions, log: Logger): Promise<DatabaseFacts> {
  const pool = new ConnectionPool({ ...options, connections: { min: 0, max: 1 } }, 'main', log);
  try {
    return await pool.use(read);
  } catch (error) {
    throw error instanceof FailedWithoutEffect ? error.error : error;
  } finally {
    await pool.close();
  }
}

async function read(session: Session): Promise<DatabaseFacts> {
  const [server] = await rows(
    session,
    `select current_setting('server_version') as version, current_setting('server_encoding') as encoding,
      (extract(epoch from clock_timestamp()) * 1000)::bigint as now,
      current_setting('max_connections')::bigint as maximum,
      (select count(*) from pg_stat_activity where backend_type = 'client backend') as open,
      to_regclass('schema_migrations') is not null as migrated, to_regclass('writer_lease') is not null as leased,
      to_regclass('database_moves') is not null as moves`,
  );
  const applied = server!['migrated'] ? await rows(session, 'select name from schema_migrations') : undefined;
  const [move] = server!['moves'] ? await rows(session, 'select state, other from database_moves') : [];
  const collation = await collationOf(session);
  return {
    version: String(server!['version']),
    encoding: String(server!['encoding']),
    now: Number(server!['now']),
    connections: { maximum: Number(server!['maximum']), open: Number(server!['open']) },
    applied: applied?.map(({ name }) => String(name)),
    writer: server!['leased'] ? await holder(session) : undefined,
    ...(move && { move: { state: String(move['state']), other: String(move['other']) } }),
    ...(collation && { collation }),
  };
}

/** Describes the process that holds the lease on writing; `undefined` when no process holds it. */
async function holder(session: Session): Promise<string | undefined> {
  const [found] = await rows(
    session,
    `select host, pid from writer_lease
      where name = 'writer' and expires_ts > (extract(epoch from clock_timestamp()) * 1000)::bigint`,
  );
  return found && `process ${found['pid']} on ${found['host']}`;
}

/**
 * Returns the recorded and the actual version of the collation when they differ. Returns `undefined` on versions of
 * PostgreSQL before 15, because they do not record the version of the collation.
 */
async function collationOf(session: Session): Promise<DatabaseFacts['collation']> {
  const [version] = await rows(session, "select current_setting('server_version_num')::bigint as number");
  if (Number(version!['number']) < 150_000) return undefined;
  const [found] = await rows(
    session,
    `select datcollversion as recorded, pg_database_collation_actual_version(oid) as actual
      from pg_database where datname = current_database()`,
  );
  const { recorded, actual } = found!;
  return typeof recorded === 'string' && typeof actual === 'string' && recorded !== actual
    ? { recorded, actual }
    : undefined;
}

async function rows(session: Session, sql: string) {
  return (await session.run(sql, [])).rows;
}
