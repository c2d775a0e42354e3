import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { restore } from '../../src/commands/backup/restore.ts';
import { checkConfiguredDatabase } from '../../src/commands/database/check.ts';
import { joinConfiguredDatabases } from '../../src/commands/database/join.ts';
import { measureDatabase } from '../../src/commands/database/size.ts';
import { databaseChecks } from '../../src/composition/database-checks.ts';
import { createHomeserver, type Homeserver } from '../../src/homeserver.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { checkDatabase, openDatabase, splitDatabase } from '../../src/kernel/database/index.ts';
import { writeMark } from '../../src/kernel/database/transfer/move-marks.ts';
import { writeStoreMark } from '../../src/kernel/database/transfer/store-marks.ts';
import { silentLogger } from '../../src/kernel/observability/index.ts';
import { systemRandomness } from '../../src/kernel/randomness.ts';
import { stateGroupIds, stateGroupTables } from '../../src/room-engine/index.ts';
import { migrations, stateMigrations } from '../../src/slices.ts';
import { eventually } from '../clients/eventually.ts';
import { openContents } from '../support/databases/database-contents.ts';
import { databaseOption } from '../support/databases/database-option.ts';
import { makeTestDatabase, portVariable, type TestDatabase } from '../support/databases/databases.ts';
import { startPostgres } from '../support/databases/postgres-server.ts';
import { callApi } from '../support/servers/api-call.ts';
import { testConfiguration } from '../support/servers/server.ts';
import { LoginRole, type Postgres } from './login-role.ts';
import { configure, hearth } from './server-process.ts';

const client = '/_matrix/client/v3';
const stateTables = stateGroupTables;

describe('a server with two databases', () => {
  const testDatabases: TestDatabase[] = [];
  let folder = '';
  let ownPostgres: Awaited<ReturnType<typeof startPostgres>> | undefined;
  let running: Homeserver | undefined;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hearth-two-'));
    if (process.env[portVariable]) return;
    ownPostgres = await startPostgres();
    process.env[portVariable] = String(ownPostgres.port);
  });
  after(async () => {
    await running?.stop();
    for (const database of testDatabases) await database.remove();
    rmSync(folder, { recursive: true, force: true });
    if (ownPostgres) delete process.env[portVariable];
    await ownPostgres?.stop();
  });

  const emptyDatabase = async (): Promise<Postgres> => {
    const database = await makeTestDatabase('postgres');
    testDatabases.push(database);
    return database.options as Postgres;
  };
  const migratedDatabase = async (): Promise<Postgres> => {
    const database = await makeTestDatabase('postgres', migrations);
    testDatabases.push(database);
    return database.options as Postgres;
  };
  const databaseEntry = (options: Postgres) => {
    const { database } = databaseOption(options) as { database: { args: object } };
    return { txn_limit: 0, ...database };
  };
  const twoDatabases = (main: Postgres, state: Postgres) => ({
    database: null,
    databases: {
      first: { ...databaseEntry(main), data_stores: ['main'] },
      second: { ...databaseEntry(state), data_stores: ['state'] },
    },
  });
  /** Starts a server on one database or on two. */
  const start = async (database: object) => {
    const homeserver = createHomeserver({
      configuration: testConfiguration({ database } as Parameters<typeof testConfiguration>[0]),
      clock: systemClock,
      randomness: systemRandomness,
      log: silentLogger,
    });
    const { addresses } = await homeserver.start();
    running = homeserver;
    const api = async (method: string, path: string, token: string | undefined, body?: object) => {
      const request = { ...(token && { token }), ...(body && { body }) };
      return callApi(addresses[0]!, method, `${client}/${path}`, request);
    };
    return { url: addresses[0]!, api, stop: () => homeserver.stop() };
  };
  type Server = Awaited<ReturnType<typeof start>>;
  const register = async ({ api }: Server, username: string) => {
    const body = { username, password: 'correct horse', auth: { type: 'm.login.dummy' } };
    return String((await api('POST', 'register', undefined, body)).body['access_token']);
  };
  const createRoom = async ({ api }: Server, token: string) => {
    const { status, body, raw } = await api('POST', 'createRoom', token, { name: 'Room' });
    assert.equal(status, 200, raw);
    return encodeURIComponent(String(body['room_id']));
  };
  const setTopic = ({ api }: Server, token: string, room: string, topic: string) =>
    api('PUT', `rooms/${room}/state/m.room.topic`, token, { topic });
  /** Sends a request whose response is not cached, so that it reads from the database. */
  const readDevices = async ({ api }: Server, token: string) =>
    assert.equal((await api('GET', 'devices', token)).status, 200);
  /**
   * Checks that a server with `cp_min: 12` and `cp_max: 12` keeps its connections. Scans and the lease use up to three
   * more.
   */
  const assertConnectionsKept = async (role: LoginRole, server: Server, token: string) => {
    const first = await role.connections();
    for (let round = 0; round < 3; round += 1)
      await Promise.all(Array.from({ length: 12 }, () => readDevices(server, token)));
    const later = await role.connections();
    assert.ok(later.length <= 15, `${later.length} connections`);
    const kept = first.filter((pid) => later.includes(pid)).length;
    assert.ok(kept >= 12, `${kept} of ${first.length} connections are left`);
  };
  /** Checks that a server with `cp_max: 1` and `txn_limit: 3` replaces its connections while it does the work. */
  const assertConnectionsReplaced = async (role: LoginRole, work: () => Promise<unknown>) => {
    const sessionsBefore = await role.sessions();
    await work();
    const { length } = await role.connections();
    assert.ok(length <= 4, `${length} connections with cp_max: 1`);
    await eventually('new connections', async () => (await role.sessions()) >= sessionsBefore + 4);
  };
  const countStateRows = async (options: Postgres) => {
    const contents = await openContents(options);
    const counts: number[] = [];
    for (const table of stateTables) counts.push((await contents.rows(table)).length);
    await contents.close();
    return counts;
  };
  const setIdOf = async (options: Postgres) => {
    const contents = await openContents(options);
    const [row] = await contents.rows('database_moves');
    await contents.close();
    return String(row?.['move_id']);
  };
  const problems = async (main: Postgres, state: Postgres) => {
    const stores = {
      main: await openDatabase(main, { log: silentLogger }),
      state: await openDatabase(state, { log: silentLogger }),
    };
    const results = await checkDatabase(stores, databaseChecks('postgres'), false);
    await stores.main.close();
    await stores.state.close();
    return results.filter(({ outcome }) => outcome !== 'none');
  };

  let main: Postgres;
  let state: Postgres;
  let server: Server;
  let token = '';
  let room = '';
  before(async () => {
    [main, state] = [await emptyDatabase(), await emptyDatabase()];
    server = await start(twoDatabases(main, state));
    token = await register(server, 'ann');
    room = await createRoom(server, token);
  });

  it('stores state groups in the database of the store state, and everything else in main [option: databases.*.data_stores]', async () => {
    assert.equal((await setTopic(server, token, room, 'First')).status, 200);
    await server.stop();
    assert.deepEqual(await countStateRows(main), [0, 0, 0]);
    assert.ok((await countStateRows(state)).every((count) => count > 0));
    const contents = await openContents(state);
    const tables = [...(await contents.columns()).keys()];
    await contents.close();
    assert.ok(tables.includes('schema_migrations') && tables.includes('jobs') && !tables.includes('events'));

    server = await start(twoDatabases(main, state));
    assert.equal((await setTopic(server, token, room, 'Second')).status, 200);
    const members = await server.api('GET', `rooms/${room}/members`, token);
    assert.equal(members.status, 200, members.raw);
    await assert.rejects(start(twoDatabases(await emptyDatabase(), state)), /is in use by another server/);
  });

  it('answers 500 to events while the database of state groups cannot be written, 507 while the disk of PostgreSQL is full, and stores none of them', async () => {
    const connection = await openDatabase(state, { log: silentLogger });
    const run = (text: string) => connection.changeSchema((schema) => schema.run(text));
    await run('alter table state_groups rename to hidden_groups');
    const failed = await setTopic(server, token, room, 'Lost');
    assert.equal(failed.status, 500, failed.raw);
    await run('alter table hidden_groups rename to state_groups');
    await run(
      `create function fill() returns trigger language plpgsql as $$ begin raise exception 'could not extend file' using errcode = 'disk_full'; end $$`,
    );
    await run('create trigger fill before insert on state_groups for each row execute function fill()');
    const full = await setTopic(server, token, room, 'Lost, too');
    assert.equal(full.status, 507, full.raw);
    assert.match(String(full.body['error']), /disk of this server is full/);
    await run('drop trigger fill on state_groups');
    await connection.close();
    assert.equal((await setTopic(server, token, room, 'Stored')).status, 200);
    const topic = await server.api('GET', `rooms/${room}/state/m.room.topic`, token);
    assert.equal(topic.body['topic'], 'Stored');
  });

  it('writes state groups again when their events are written again after a failure', async () => {
    const otherRoom = await createRoom(server, token);
    const connection = await openDatabase(main, { log: silentLogger });
    const run = (text: string) => connection.changeSchema((schema) => schema.run(text));
    // The events of one room cannot be written, so that the batch of both rooms is repeated for each room.
    await run(
      `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'unwanted'; end $$`,
    );
    await run(
      `create trigger refuse before insert on events for each row when (new.json like '%unwanted%') execute function refuse()`,
    );
    const answers = await Promise.all([
      setTopic(server, token, room, 'unwanted'),
      setTopic(server, token, otherRoom, 'wanted'),
    ]);
    assert.deepEqual(
      answers.map(({ status }) => status),
      [500, 200],
    );
    await run('drop trigger refuse on events');
    await connection.close();
    assert.deepEqual(await problems(main, state), []);
  });

  it('refuses to start on databases that do not belong together, and on one of two databases alone', async () => {
    await server.stop();
    const mismatch = /do not belong together/;
    await assert.rejects(start(twoDatabases(state, main)), mismatch);
    await assert.rejects(start(twoDatabases(main, await emptyDatabase())), mismatch);
    await assert.rejects(
      start({ database: databaseEntry(main), databases: {} }),
      /has only the data store main/,
    );
    await assert.rejects(
      start({ database: databaseEntry(state), databases: {} }),
      /has only the data store state/,
    );
  });

  it('connects to each database with its user and password, keeps from cp_min to cp_max connections open, and renews them after txn_limit transactions [option: databases.*.name, databases.*.txn_limit, databases.*.args.database, databases.*.args.user, databases.*.args.password, databases.*.args.dbname, databases.*.args.host, databases.*.args.port, databases.*.args.cp_min, databases.*.args.cp_max]', async () => {
    const [mainRole, stateRole] = [
      await LoginRole.create(main, 'two_main'),
      await LoginRole.create(state, 'two_state'),
    ];
    try {
      const first = mainRole.entry({ cp_min: 12, cp_max: 12 }, 0);
      const { dbname, ...fewArgs } = stateRole.entry({ cp_min: 0, cp_max: 1 }, 0).args;
      const configured = (password: string) => ({
        database: null,
        databases: {
          first: { ...first, args: { ...first.args, password }, data_stores: ['main'] },
          second: { ...first, txn_limit: 3, args: { ...fewArgs, database: dbname }, data_stores: ['state'] },
        },
      });
      await assert.rejects(start(configured('wrong')), /password authentication failed for user "two_main"/);
      server = await start(configured(mainRole.password));
      await assertConnectionsKept(mainRole, server, token);
      await assertConnectionsReplaced(stateRole, async () => {
        for (let number = 0; number < 12; number += 1) await setTopic(server, token, room, `Again ${number}`);
      });
      await server.stop();
    } finally {
      await running?.stop();
      await mainRole.remove();
      await stateRole.remove();
    }
  });

  it('connects to its only database with its user and password, keeps cp_min to cp_max connections open, and renews them after txn_limit transactions [option: database.txn_limit, database.args.user, database.args.password, database.args.dbname, database.args.host, database.args.port, database.args.cp_min, database.args.cp_max]', async () => {
    const onlyDatabase = await migratedDatabase();
    const role = await LoginRole.create(onlyDatabase, 'two_only');
    try {
      const configured = (args: object, limit = 0) => ({ database: role.entry(args, limit), databases: {} });
      await assert.rejects(start(configured({ password: 'wrong' })), /password authentication failed/);
      server = await start(configured({ cp_min: 12, cp_max: 12 }));
      const user = await register(server, 'ann');
      await assertConnectionsKept(role, server, user);
      await server.stop();
      server = await start(configured({ cp_max: 1 }, 3));
      await assertConnectionsReplaced(role, () =>
        Promise.all(Array.from({ length: 30 }, () => readDevices(server, user))),
      );
      await server.stop();
    } finally {
      await running?.stop();
      await role.remove();
    }
  });

  it('hearth database refuses to check or measure two databases that do not belong together', async () => {
    const exchanged = { config: configure(join(folder, 'exchanged'), twoDatabases(state, main)) };
    const alone = { config: configure(join(folder, 'alone'), { database: databaseEntry(main) }) };
    for (const command of [checkConfiguredDatabase, measureDatabase]) {
      await assert.rejects(command(exchanged), /do not belong together/);
      await assert.rejects(command(alone), /has only the data store main/);
    }
  });

  it('starts on two databases after hearth database split, even when that was interrupted, and deletes rooms from both', async () => {
    const [main, state] = [await migratedDatabase(), await emptyDatabase()];
    const oneDatabase = { database: databaseEntry(main), databases: {} };
    server = await start(oneDatabase);
    token = await register(server, 'ann');
    room = await createRoom(server, token);
    const since = String((await server.api('GET', 'sync', token)).body['next_batch']);
    for (let number = 0; number < 40; number += 1) await setTopic(server, token, room, `Topic ${number}`);
    const paths = configure(folder, twoDatabases(main, state));
    const args = ['database', 'split', ...paths.flatMap((path) => ['-c', path])];
    const runSplit = () =>
      splitDatabase({
        source: main,
        target: state,
        migrations,
        stateMigrations,
        stateTables,
        bound: stateGroupIds,
        randomness: systemRandomness,
        log: silentLogger,
        onProgress: () => {},
      });
    assert.equal((await runSplit()).isComplete, false);
    await setTopic(server, token, room, 'Last');
    await server.stop();
    const countsBefore = await countStateRows(main);
    await assert.rejects(start(twoDatabases(main, state)), /this database is incomplete/);

    // Simulates a kill of the command after both databases were marked as stores.
    const mark = await openDatabase(main, { log: silentLogger });
    await writeStoreMark(mark, { store: 'main', setId: await setIdOf(state) });
    await mark.close();
    const stateMark = await openDatabase(state, { log: silentLogger });
    await writeStoreMark(stateMark, { store: 'state', setId: await setIdOf(state) });
    await stateMark.close();
    await assert.rejects(start(oneDatabase), /has only the data store main/);
    await assert.rejects(start(twoDatabases(main, state)), /this database is incomplete/);
    const secondSplit = await hearth(args);
    assert.deepEqual([secondSplit.code, secondSplit.err], [0, '']);
    assert.match(secondSplit.out, / {2}state_groups: \d+ rows, hash [0-9a-f]{30}\n/);
    assert.deepEqual([await countStateRows(state), await countStateRows(main)], [countsBefore, [0, 0, 0]]);
    await assert.rejects(start(oneDatabase), /has only the data store main/);
    assert.equal((await runSplit()).isComplete, true, 'the command may be called again');

    const admin = await openDatabase(main, { log: silentLogger });
    await admin.batch([{ sql: 'update users set is_admin = 1', rows: [[]] }]);
    await admin.close();
    server = await start(twoDatabases(main, state));
    const synced = await server.api('GET', `sync?since=${since}`, token);
    assert.match(synced.raw, /"topic":"Last"/);
    assert.equal((await setTopic(server, token, room, 'New')).status, 200);
    assert.ok((await countStateRows(state))[0]! > countsBefore[0]!);
    const purged = await callApi(server.url, 'DELETE', `/_synapse/admin/v1/rooms/${room}`, {
      token,
      body: { purge: true },
    });
    assert.equal(purged.status, 200, purged.raw);
    assert.deepEqual(await countStateRows(state), [0, 0, 0]);
    await server.stop();
    assert.deepEqual(await problems(main, state), []);

    // Events in the database `main` may refer to state groups that were assigned after the backup of the other
    // database.
    const bound = async () => {
      const contents = await openContents(state);
      const rows = await contents.rows('number_bounds');
      await contents.close();
      return Number(rows.find(({ name }) => name === stateGroupIds)?.['bound']);
    };
    const last = await bound();
    await restore(undefined, { databaseOnly: true, config: paths });
    assert.ok((await bound()) > last + 1_000_000, 'a restored database skips ids of groups');
  });

  it('starts with one database after hearth database join, also after an interrupted one, and then refuses to start with two', async () => {
    const [main, state] = [await emptyDatabase(), await emptyDatabase()];
    const oneDatabase = { database: databaseEntry(main), databases: {} };
    server = await start(twoDatabases(main, state));
    token = await register(server, 'ann');
    room = await createRoom(server, token);
    const since = String((await server.api('GET', 'sync', token)).body['next_batch']);
    await setTopic(server, token, room, 'Of two');
    const config = configure(join(folder, 'joined'), twoDatabases(main, state));
    const joinDatabases = () => joinConfiguredDatabases({ config });
    await server.stop();
    const countsBefore = await countStateRows(state);

    // Simulates a kill of the command before its last step.
    const marked = await openDatabase(state, { log: silentLogger });
    await writeMark(marked, { state: 'moved', moveId: 'any', other: 'main' }, 0);
    await marked.close();
    await assert.rejects(start(twoDatabases(main, state)), /this database was moved to main/);
    await assert.rejects(start(oneDatabase), /has only the data store main/);
    await joinDatabases();
    assert.deepEqual(await countStateRows(main), countsBefore);
    await assert.rejects(
      start(twoDatabases(main, state)),
      /this database was moved to the PostgreSQL database/,
    );
    await assert.rejects(joinDatabases(), /has the state groups already/);

    server = await start(oneDatabase);
    assert.match((await server.api('GET', `sync?since=${since}`, token)).raw, /"topic":"Of two"/);
    assert.equal((await setTopic(server, token, room, 'Of one')).status, 200);
    assert.ok((await countStateRows(main))[0]! > countsBefore[0]!);
    await server.stop();
    assert.deepEqual(await problems(main, main), []);
  });
});
