import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { HearthProcess, registrationSecret } from '../../test/clients/hearth-process.ts';
import { usageOf } from '../load/process-usage.ts';
import type { Target } from '../target.ts';
import { postgresDatabase } from './postgres.ts';
import { settledSqliteBytes } from './sqlite-size.ts';

const buildScript = join(import.meta.dirname, '../../scripts/build.ts');

/** Builds Hearth in the same way as an installed server, and starts it on an empty database. */
export async function startHearth(usePostgres: boolean): Promise<Target> {
  execFileSync(process.execPath, [buildScript, '--if-changed']);
  const postgres = usePostgres ? await postgresDatabase() : undefined;
  const server = await HearthProcess.create({
    // Turns off the cache of complete sync responses, which would be measured instead of the work.
    caches: { sync_response_cache_duration: '0s' },
    ...(postgres && { database: postgres.settings }),
  });
  await server.start();

  async function databaseBytes(): Promise<number> {
    if (postgres) return postgres.bytes();
    await server.stop();
    const bytes = settledSqliteBytes(join(server.directory, 'homeserver.db'));
    await server.start();
    return bytes;
  }

  async function runSql(statements: readonly string[]): Promise<void> {
    await server.stop();
    if (postgres) await postgres.run(statements);
    else {
      const database = new DatabaseSync(join(server.directory, 'homeserver.db'));
      database.exec(`BEGIN; ${statements.join(';')}; COMMIT`);
      database.close();
    }
    await server.start();
  }

  return {
    kind: 'hearth',
    url: server.url,
    registrationSecret,
    usage: () => usageOf([server.pid, postgres?.pid].filter((pid) => pid !== undefined)),
    process: {
      async restart() {
        await server.stop();
        return server.start();
      },
      databaseBytes,
      runSql,
    },
    async close() {
      await server.remove();
      await postgres?.close();
    },
  };
}
