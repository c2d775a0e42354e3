import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, describe, it } from 'node:test';
import { Client } from 'pg';
import { eventually } from '../../../../test/clients/eventually.ts';
import { forPostgres, type OpenDatabase } from '../../../../test/support/databases/databases.ts';
import { createLogger } from '../../observability/index.ts';
import {
  type Database,
  type DatabaseOptions,
  databaseMigrations,
  LeaseLost,
  type Migration,
  migrate,
  openDatabaseBeside,
  openDatabaseExclusively,
  type Writer,
} from '../index.ts';
import type { PostgresOptions } from './options.ts';

interface NoteTables {
  notes: { text: string };
}

const notes: Migration = { name: 'test/notes', up: ({ run }) => run('create table notes (text text)') };
const holder = join(import.meta.dirname, '../../../../test/support/databases/lease-holder.ts');

const insert = (text: string) => [{ sql: 'insert into notes values (?)', rows: [[text]] }];
const add = (database: Database, text: string) =>
  database.transaction(async (writer: Writer<NoteTables>) => {
    await writer.insertInto('notes').values({ text }).execute();
  });
const textsIn = async (database: Database) =>
  (await database.reader<NoteTables>().selectFrom('notes').select('text').orderBy('text').execute()).map(
    ({ text }) => text,
  );

/** Options in milliseconds of a lease that is so short that a test can wait until it expires. */
const short = { leaseTime: 1_500, claimTimeout: 500 };
/** Options of a lease that its holder renews while a test waits, in time also on a busy machine. */
const renewed = { leaseTime: 15_000, claimTimeout: 500 };
/** Options of a lease that neither expires nor is renewed during a test. */
const long = { leaseTime: 600_000, claimTimeout: 600 };

forPostgres((open: OpenDatabase) => {
  /** Opens one database several times, as different processes do. */
  class Processes {
    readonly options: PostgresOptions;
    readonly losses: Error[] = [];
    readonly warnings: string[] = [];
    readonly #log = createLogger({
      level: 'warn',
      destination: { write: (line) => void this.warnings.push(line) },
    });
    readonly #opened: Database[] = [];
    readonly #children: ChildProcess[] = [];

    constructor(options: DatabaseOptions) {
      this.options = options as PostgresOptions;
    }

    async open(tuning: Partial<PostgresOptions> = {}): Promise<Database> {
      const options = { ...this.options, ...tuning };
      const onLost = (error: Error) => void this.losses.push(error);
      const database = await openDatabaseExclusively(options, { log: this.#log }, onLost);
      this.#opened.push(database);
      return database;
    }

    /** Opens the database beside the process that has it. */
    async openBeside(): Promise<Database> {
      const onLost = (error: Error) => void this.losses.push(error);
      const database = await openDatabaseBeside(this.options, { log: this.#log }, onLost);
      this.#opened.push(database);
      return database;
    }

    /** Opens the database in a child process. */
    async child(tuning: Partial<PostgresOptions>) {
      const child = fork(holder, [JSON.stringify({ ...this.options, ...tuning })]);
      this.#children.push(child);
      const received: unknown[] = [];
      child.on('message', (message) => received.push(message));
      const untilReceived = (message: string) => eventually(`"${message}"`, () => received.includes(message));
      await untilReceived('open');
      return { child, received, untilReceived };
    }

    /** Changes the stored lease, in place of another process that takes it, or of time that passes. */
    async change(set: string): Promise<void> {
      await this.query(`update writer_lease set ${set}`);
    }

    async query(text: string): Promise<Record<string, unknown>[]> {
      const { host, port, user, password, database } = this.options;
      const client = new Client({ host, port, user, password, database } as never);
      await client.connect();
      try {
        return (await client.query(text)).rows;
      } finally {
        await client.end();
      }
    }

    async close(): Promise<void> {
      for (const child of this.#children) child.kill('SIGKILL');
      await Promise.all(this.#opened.map((database) => database.close()));
    }
  }

  let started: Processes | undefined;
  afterEach(() => started?.close());
  const start = async (migrations: readonly Migration[] = [...databaseMigrations, notes]) => {
    started = new Processes(open.optionsOf(await open(migrations)));
    return started;
  };

  describe('openDatabaseBeside on PostgreSQL', () => {
    it('writes beside the process that has the lease, until another process takes the lease', async () => {
      const processes = await start();
      const main = await processes.open(long);
      const beside = await processes.openBeside();
      await add(beside, 'beside');
      await beside.batch([{ sql: 'insert into notes (text) values (?)', rows: [['in a batch']] }]);
      await main.close();
      const next = await processes.open(long);
      await assert.rejects(add(beside, 'too late'), LeaseLost);
      await assert.rejects(
        beside.batch([{ sql: 'insert into notes (text) values (?)', rows: [['too late']] }]),
        LeaseLost,
      );
      assert.deepEqual(await textsIn(next), ['beside', 'in a batch']);
      assert.equal(processes.losses.length, 1);
    });

    it('does not release the lease of the main process when the database of the other process is closed', async () => {
      const processes = await start();
      const main = await processes.open(long);
      await (await processes.openBeside()).close();
      await add(main, 'still mine');
      const [lease] = await processes.query('select epoch, expires_ts from writer_lease');
      assert.equal(Number(lease?.['epoch']), 1);
      assert.ok(Number(lease?.['expires_ts']) > 0);
    });

    it('refuses to open a database that no process has opened', async () => {
      const processes = await start();
      await assert.rejects(processes.openBeside(), /no server writes the PostgreSQL database/);
    });
  });

  describe('openDatabaseExclusively on PostgreSQL', () => {
    it('refuses a second process while the first renews its lease, and names the first process in the error', async () => {
      const processes = await start();
      const first = await processes.open(renewed);
      await assert.rejects(processes.open(renewed), (error: Error) => {
        assert.equal(error.name, 'StartFailure');
        assert.match(
          error.message,
          /^the PostgreSQL database \S+ on \S+ is in use by another server: process \d+ on \S+, since \d{4}-.*Z$/,
        );
        assert.ok(error.message.includes(`process ${process.pid} `));
        return true;
      });
      await add(first, 'still mine');
      assert.deepEqual(processes.losses, []);
    });

    it('opens at once a database that another process has closed', async () => {
      const processes = await start();
      const first = await processes.open(long);
      await add(first, 'one');
      await first.close();
      const second = await processes.open(long);
      await add(second, 'two');
      await second.close();
      await processes.open(long);
    });

    it('waits for a database that another process has open, and opens it after that process closes it', async () => {
      const processes = await start();
      const first = await processes.open(long);
      const waiting = processes.open({ ...long, claimTimeout: 60_000 });
      await eventually('a process that waits', () =>
        processes.warnings.some((line) => line.includes('waiting for')),
      );
      await first.close();
      await add(await waiting, 'mine');
    });

    it('opens a new database for only one of several processes that open it at the same time', async () => {
      const processes = await start([]);
      const attempts = await Promise.allSettled([1, 2, 3].map(() => processes.open(renewed)));
      const opened = attempts.filter((attempt) => attempt.status === 'fulfilled');
      assert.equal(opened.length, 1);
      await migrate(opened[0]!.value, [...databaseMigrations, notes]);
      await add(opened[0]!.value, 'made');
    });

    it('lets a second process migrate only after the first has closed the database', async () => {
      const processes = await start([]);
      const first = await processes.open(long);
      const second = processes.open({ ...long, claimTimeout: 60_000 });
      const ran: string[] = [];
      const migrations = (by: string) => [...databaseMigrations, { ...notes, up: notesBy(by, ran) }];
      const migrated = second.then((database) => migrate(database, migrations('second')));
      await migrate(first, migrations('first'));
      await first.close();
      await migrated;
      assert.deepEqual(ran, ['first']);
    });

    it('takes over from a killed process when its lease has expired', async () => {
      const processes = await start();
      const { child } = await processes.child({ leaseTime: 1_500 });
      child.kill('SIGKILL');
      await eventually('the exit of the process', () => child.signalCode !== null);
      const [lease] = await processes.query('select expires_ts from writer_lease');
      await add(await processes.open(short), 'taken over');
      const [next] = await processes.query('select taken_ts from writer_lease');
      assert.ok(Number(next?.['taken_ts']) >= Number(lease?.['expires_ts']));
    });

    it('takes over from a paused process, whose open transaction then fails', async () => {
      const processes = await start();
      const { child, received, untilReceived } = await processes.child({ leaseTime: 500 });
      child.send('begin');
      await untilReceived('begun');
      child.kill('SIGSTOP');
      const next = await processes.open(short);
      await add(next, 'taken over');
      child.kill('SIGCONT');
      child.send('commit');
      await untilReceived('failed');
      await untilReceived('lost: LeaseLost');
      assert.ok(!received.includes('committed'));
      assert.deepEqual(await textsIn(next), ['taken over']);
    });

    it('takes over only after an open transaction of the previous holder has committed', async () => {
      const processes = await start();
      const first = await processes.open(long);
      const [begun, commits] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const last = first.transaction(async (writer: Writer<NoteTables>) => {
        await writer.insertInto('notes').values({ text: 'last of the first' }).execute();
        begun.resolve();
        await commits.promise;
      });
      await begun.promise;
      await processes.change('expires_ts = 1');
      const taking = processes.open(long);
      const waits =
        "select from pg_locks where relation = 'writer_lease'::regclass and mode = 'ExclusiveLock' and not granted";
      await eventually(
        'a process that takes the lease',
        async () => (await processes.query(waits)).length > 0,
      );
      commits.resolve();
      await last;
      const second = await taking;
      assert.deepEqual(await textsIn(second), ['last of the first']);
      await assert.rejects(add(first, 'late'), { name: 'LeaseLost' });
    });
  });

  describe('a PostgreSQL database whose lease another process has taken', () => {
    it('rejects batches, transactions and schema changes with LeaseLost', async () => {
      for (const write of [
        (database: Database) => database.batch(insert('late')),
        (database: Database) => add(database, 'late'),
        (database: Database) => database.changeSchema(({ run }) => run('create table late (text text)')),
      ]) {
        const processes = await start();
        const database = await processes.open(long);
        await processes.change('epoch = epoch + 1');
        await assert.rejects(write(database), {
          name: 'LeaseLost',
          message: /another server has taken over/,
        });
        assert.deepEqual(
          processes.losses.map(({ name }) => name),
          ['LeaseLost'],
        );
        const statisticsBefore = { ...database.statistics };
        await assert.rejects(add(database, 'late'), { name: 'LeaseLost' });
        await assert.rejects(database.batch(insert('late')), { name: 'LeaseLost' });
        assert.deepEqual(database.statistics, statisticsBefore);
        assert.equal(processes.losses.length, 1);
        assert.deepEqual(await textsIn(database), []);
        await processes.close();
      }
    });

    it('rejects all queued batches with LeaseLost', async () => {
      const processes = await start();
      const database = await processes.open(long);
      await processes.change('epoch = epoch + 1');
      const batches = Array.from({ length: 20 }, (_, index) => database.batch(insert(`${index}`)));
      for (const batch of batches) await assert.rejects(batch, LeaseLost);
      assert.deepEqual(await textsIn(database), []);
    });

    it('detects the loss of the lease without a write', async () => {
      const processes = await start();
      await processes.open(short);
      await processes.change('epoch = epoch + 1');
      await eventually('the loss', () => processes.losses.length > 0);
    });

    it('does not release the lease of the next process when it is closed', async () => {
      const processes = await start();
      const first = await processes.open(long);
      await processes.change('expires_ts = 1');
      const second = await processes.open(renewed);
      await first.close();
      await assert.rejects(processes.open(renewed), { name: 'StartFailure' });
      await add(second, 'still mine');
    });
  });

  it('keeps the lease on a PostgreSQL database when its connections break', async () => {
    const processes = await start();
    const database = await processes.open(renewed);
    await processes.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    );
    await add(database, 'again');
    await assert.rejects(processes.open(renewed), { name: 'StartFailure' });
    assert.deepEqual(processes.losses, []);
  });

  it('adds no round trip for the lease to a batch or a transaction', async () => {
    const processes = await start();
    const roundTrips: number[][] = [];
    const databases = [await open([...databaseMigrations, notes]), await processes.open(long)];
    for (const database of databases) {
      roundTrips.push([
        await roundTripsOf(() => database.batch(insert('batch'))),
        await roundTripsOf(() => add(database, 'transaction')),
      ]);
    }
    assert.deepEqual(roundTrips, [
      [2, 2],
      [2, 2],
    ]);
  });
});

/** Counts the round trips of `work`: how often a query is sent after an answer was received. */
async function roundTripsOf(work: () => Promise<unknown>): Promise<number> {
  const { query } = Client.prototype;
  let trips = 0;
  let isAnswered = true;
  Client.prototype.query = function (this: Client, ...args: unknown[]) {
    if (isAnswered) trips++;
    isAnswered = false;
    const answer = (query as (...given: unknown[]) => Promise<unknown>).apply(this, args);
    const answered = () => {
      isAnswered = true;
    };
    answer.then(answered, answered);
    return answer;
  } as never;
  try {
    await work();
  } finally {
    Client.prototype.query = query;
  }
  return trips;
}

/** Returns the migration `notes`, which adds `by` to `ran` when it runs. */
const notesBy =
  (by: string, ran: string[]): Migration['up'] =>
  async (schema) => {
    ran.push(by);
    await notes.up(schema);
  };
