import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Client } from 'pg';
import { databaseOption } from '../../../../test/support/databases/database-option.ts';
import { forPostgres, forSelectedDatabases } from '../../../../test/support/databases/databases.ts';
import { connectionTo } from '../../../../test/support/databases/postgres-server.ts';
import { testConfiguration } from '../../../../test/support/servers/server.ts';
import { systemClock } from '../../../kernel/clock.ts';
import {
  claimFile,
  type Database,
  type DatabaseOptions,
  openDatabaseExclusively,
} from '../../../kernel/database/index.ts';
import { silentLogger } from '../../../kernel/observability/index.ts';
import { migrations, stateMigrations } from '../../../slices.ts';
import { assertFound } from '../test/doctor-subject.ts';
import { checkDatabase } from './database.ts';

type Applied = { schema_migrations: { name: string; applied_ts: number } };

type Moves = {
  database_moves: { name: string; state: string; move_id: string; other: string; changed_ts: number };
};

/** The values of the options that an entry of `databases` does not set. */
const entryDefaults = {
  txn_limit: 0,
  args: {
    database: null,
    user: null,
    password: null,
    dbname: null,
    host: null,
    port: null,
    cp_min: null,
    cp_max: null,
  },
};

/** Checks a database as `hearth doctor` does. @param args changes of `database.args` in the configuration */
function check(options: DatabaseOptions, args: Record<string, unknown> = {}, now = systemClock.now) {
  const { name, args: given } = databaseOption(options);
  const database = { name, args: { ...given, ...args }, txn_limit: 0 };
  const configuration = testConfiguration({ database: { database } as never });
  return checkDatabase({ configuration, clock: { ...systemClock, now }, paths: ['homeserver.yaml'] });
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('hearth doctor, for the database', () => {
    const setApplied = (database: Database, change: 'newer' | 'older') =>
      database.transaction<Applied, unknown>((writer) =>
        change === 'newer'
          ? writer.insertInto('schema_migrations').values({ name: 'future-1', applied_ts: 0 }).execute()
          : writer.deleteFrom('schema_migrations').where('name', '=', migrations.at(-1)!.name).execute(),
      );

    it('distinguishes a database without tables, one that the next start migrates, and one of a newer version', async () => {
      const empty = open.optionsOf(await open());
      assertFound(await check(empty), 'database-empty', 'note', /the first start creates the tables/);
      const database = await open(migrations);
      const options = open.optionsOf(database);
      assertFound(await check(options), 'database-schema', 'ok', /All migrations/);
      await setApplied(database, 'older');
      assertFound(
        await check(options),
        'database-migrations',
        'note',
        /applies 1 migration /,
        /^npm run hearth -- backup DIRECTORY -c homeserver\.yaml$/,
      );
      await setApplied(database, 'newer');
      assertFound(await check(options), 'database-newer', 'error', /applied future-1/, /hearth -- restore/);
    });

    it('finds that all migrations of the main database and of a separate database of room states are applied', async () => {
      const [main, state] = [await open(migrations), await open(stateMigrations)];
      const entry = (database: Database, stores: readonly string[]) => {
        const { name, args } = databaseOption(open.optionsOf(database));
        return { ...entryDefaults, name, args: { ...entryDefaults.args, ...args }, data_stores: stores };
      };
      const databases = { a: entry(main, ['main']), b: entry(state, ['state']) };
      const found = await checkDatabase({
        configuration: testConfiguration({ database: { databases } as never }),
        clock: systemClock,
        paths: [],
      });
      const schema = found.filter(({ name }) => name === 'database-schema');
      assert.deepEqual(
        schema.map(({ level }) => level),
        ['ok', 'ok'],
        JSON.stringify(found),
      );
    });

    it('reports a database that was moved, and a database whose restore or move has not ended', async () => {
      const database = await open(migrations);
      const setMoveState = (state: string) =>
        database.transaction<Moves, unknown>(async (writer) => {
          await writer.deleteFrom('database_moves').execute();
          const row = { name: 'move', state, move_id: 'a', other: 'the database X', changed_ts: 0 };
          await writer.insertInto('database_moves').values(row).execute();
        });
      await setMoveState('moved');
      const found = () => check(open.optionsOf(database));
      assertFound(await found(), 'database-moved', 'error', /moved to the database X/, /configuration/);
      await setMoveState('restoring');
      assertFound(
        await found(),
        'database-incomplete',
        'error',
        /restore from/,
        /^npm run hearth -- restore/,
      );
      await setMoveState('incomplete');
      assertFound(
        await found(),
        'database-incomplete',
        'error',
        /has not ended/,
        /^npm run hearth -- database move/,
      );
    });

    it('reports whether a server has the database open, and changes nothing', async () => {
      const options = open.optionsOf(await open(migrations));
      assertFound(await check(options), 'database-lease', 'ok', /No server/);
      const taken = await openDatabaseExclusively(options, { log: silentLogger }, () => undefined);
      const writer = open.kind === 'sqlite' ? /a server of this machine/ : /process \d+ on /;
      assertFound(await check(options), 'database-lease', 'ok', writer);
      await taken.close();
      assertFound(await check(options), 'database-lease', 'ok', /No server/);
    });
  });
});

describe('hearth doctor, for a SQLite file', () => {
  let folder = '';
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'hearth-doctor-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('reports that the file does not exist, and does not create it', async () => {
    const path = join(folder, 'missing.db');
    for (const _ of [1, 2]) {
      assertFound(
        await check({ kind: 'sqlite', path }),
        'database-missing',
        'note',
        /missing\.db does not exist/,
      );
    }
  });

  it('reports problems of the main database and of a separate database of room states', async () => {
    const entry = (name: string, data_stores: readonly string[]) => ({
      ...testConfiguration().database.database,
      name: 'sqlite3',
      args: { database: join(folder, name) },
      data_stores,
    });
    writeFileSync(join(folder, 'states.db'), 'no database\n'.repeat(100));
    const databases = { a: entry('main.db', ['main']), b: entry('states.db', ['state']) };
    const configuration = testConfiguration({ database: { databases } as never });
    const found = await checkDatabase({ configuration, clock: systemClock, paths: [] });
    assertFound(found, 'database-missing', 'note', /main\.db does not exist/);
    assertFound(found, 'database-unreachable', 'error', /states\.db cannot be read/);
  });

  it('reports a file that is not a database', async () => {
    const path = join(folder, 'text.db');
    writeFileSync(path, 'no database\n'.repeat(100));
    assertFound(
      await check({ kind: 'sqlite', path }),
      'database-unreachable',
      'error',
      /not a database/,
      /ls -l/,
    );
    // The file can be claimed, because the check has left no claim on it.
    claimFile(path)();
  });
});

forPostgres((open) => {
  describe('hearth doctor, for PostgreSQL', () => {
    let options: Extract<DatabaseOptions, { kind: 'postgres' }>;
    let client: Client;
    before(async () => {
      options = open.optionsOf(await open()) as typeof options;
      client = new Client(connectionTo(options.port!));
      await client.connect();
      await client.query("create database doctor_latin encoding 'LATIN1' template template0");
    });
    after(async () => {
      await client.query('drop database doctor_latin');
      await client.end();
    });

    it('reports why it cannot connect, with the command that mends it', async () => {
      const findingsWith = (args: Record<string, unknown>) => check(options, args);
      assertFound(
        await findingsWith({ dbname: 'missing' }),
        'database-unreachable',
        'error',
        /"missing" does not exist/,
        /^createdb --encoding=UTF8 .* missing$/,
      );
      assertFound(
        await findingsWith({ user: 'nobody' }),
        'database-unreachable',
        'error',
        /"nobody" does not exist/,
        /pg_hba\.conf/,
      );
      assertFound(
        await findingsWith({ port: 1 }),
        'database-unreachable',
        'error',
        /ECONNREFUSED/,
        /pg_isready -h 127\.0\.0\.1 -p 1/,
      );
    });

    it('reports an encoding that is not UTF-8', async () => {
      assertFound(
        await check(options, { dbname: 'doctor_latin' }),
        'database-encoding',
        'error',
        /LATIN1/,
        /createdb --encoding=UTF8/,
      );
    });

    it('reports a changed version of the collation, a different clock, and too few connections', async () => {
      await client.query("create database doctor_icu template template0 locale_provider icu icu_locale 'en'");
      try {
        await client.query("update pg_database set datcollversion = '1' where datname = 'doctor_icu'");
        assertFound(
          await check(options, { dbname: 'doctor_icu' }),
          'database-collation',
          'warning',
          /version 1 /,
          /REFRESH COLLATION VERSION/,
        );
        const { fix } = (await check(options, { dbname: 'doctor_icu' })).find(
          ({ name }) => name === 'database-collation',
        )!;
        await client.query(/ -c '(.+)'$/.exec(fix!)![1]!);
        const mended = await check(options, { dbname: 'doctor_icu' });
        assert.ok(mended.every(({ name }) => name !== 'database-collation'));
      } finally {
        await client.query('drop database doctor_icu');
      }
      const ahead = () => systemClock.now() + 60_000;
      assertFound(
        await check(options, {}, ahead),
        'database-clock',
        'warning',
        /differ by (59|60) seconds/,
        /timedatectl/,
      );
      assertFound(
        await check(options, { cp_max: 100_000 }),
        'database-connections',
        'error',
        /may open 100004/,
        /max_connections/,
      );
    });

    it('advises a value of max_connections that is enough for cp_max', async () => {
      const { fix } = (await check(options, { cp_max: 1_000 })).find(
        ({ name }) => name === 'database-connections',
      )!;
      const advised = Number(/max_connections = ([0-9]+)/.exec(fix!)?.[1]);
      assert.ok(advised > 1_004 && advised <= 1_500, fix);
    });
  });
});
