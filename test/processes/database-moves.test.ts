import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { restore } from '../../src/commands/backup/restore.ts';
import { joinConfiguredDatabases } from '../../src/commands/database/join.ts';
import { openDatabase, splitDatabase } from '../../src/kernel/database/index.ts';
import { writeMark } from '../../src/kernel/database/transfer/move-marks.ts';
import { writeStoreMark } from '../../src/kernel/database/transfer/store-marks.ts';
import { silentLogger } from '../../src/kernel/observability/index.ts';
import { systemRandomness } from '../../src/kernel/randomness.ts';
import { stateGroupIds, stateGroupTables } from '../../src/room-engine/index.ts';
import { migrations, stateMigrations } from '../../src/slices.ts';
import { openContents } from '../support/databases/database-contents.ts';
import { callApi } from '../support/servers/api-call.ts';
import type { Postgres } from './login-role.ts';
import {
  countStateRows,
  oneDatabase,
  PostgresDatabases,
  problems,
  twoDatabases,
} from './server-on-databases.ts';
import { configure, hearth } from './server-process.ts';

/** Returns the id that the databases of one server share. */
async function setIdOf(options: Postgres): Promise<string> {
  const contents = await openContents(options);
  const [row] = await contents.rows('database_moves');
  await contents.close();
  return String(row?.['move_id']);
}

describe('hearth database split and hearth database join', () => {
  let databases: PostgresDatabases;
  before(async () => {
    databases = await PostgresDatabases.open();
  });
  after(() => databases.close());

  it('starts on two databases once hearth database split has completed, even when an earlier call was interrupted, and deletes rooms from both', async () => {
    const main = await databases.migrated();
    const state = await databases.empty();
    let server = await databases.start(oneDatabase(main));
    const token = await server.register('ann');
    const room = await server.createRoom(token);
    const since = String((await server.api('GET', 'sync', token)).body['next_batch']);
    for (let number = 0; number < 40; number += 1) await server.setTopic(token, room, `Topic ${number}`);
    const paths = configure(databases.folder, twoDatabases(main, state));
    const args = ['database', 'split', ...paths.flatMap((path) => ['-c', path])];
    const runSplit = () =>
      splitDatabase({
        source: main,
        target: state,
        migrations,
        stateMigrations,
        stateTables: stateGroupTables,
        bound: stateGroupIds,
        randomness: systemRandomness,
        log: silentLogger,
        onProgress: () => {},
      });
    assert.equal((await runSplit()).isComplete, false);
    await server.setTopic(token, room, 'Last');
    await server.stop();
    const countsBefore = await countStateRows(main);
    await assert.rejects(databases.start(twoDatabases(main, state)), /this database is incomplete/);

    // Simulates a kill of the command after both databases were marked as stores.
    const mainDatabase = await openDatabase(main, { log: silentLogger });
    await writeStoreMark(mainDatabase, { store: 'main', setId: await setIdOf(state) });
    await mainDatabase.close();
    const stateDatabase = await openDatabase(state, { log: silentLogger });
    await writeStoreMark(stateDatabase, { store: 'state', setId: await setIdOf(state) });
    await stateDatabase.close();
    await assert.rejects(databases.start(oneDatabase(main)), /has only the data store main/);
    await assert.rejects(databases.start(twoDatabases(main, state)), /this database is incomplete/);
    const secondSplit = await hearth(args);
    assert.deepEqual([secondSplit.code, secondSplit.err], [0, '']);
    assert.match(secondSplit.out, / {2}state_groups: \d+ rows, hash [0-9a-f]{30}\n/);
    assert.deepEqual([await countStateRows(state), await countStateRows(main)], [countsBefore, [0, 0, 0]]);
    await assert.rejects(databases.start(oneDatabase(main)), /has only the data store main/);
    assert.equal((await runSplit()).isComplete, true, 'the command may be called again');

    const splitMain = await openDatabase(main, { log: silentLogger });
    await splitMain.batch([{ sql: 'update users set is_admin = 1', rows: [[]] }]);
    await splitMain.close();
    server = await databases.start(twoDatabases(main, state));
    const synced = await server.api('GET', `sync?since=${since}`, token);
    assert.match(synced.raw, /"topic":"Last"/);
    assert.equal((await server.setTopic(token, room, 'New')).status, 200);
    assert.ok((await countStateRows(state))[0]! > countsBefore[0]!);
    const purged = await callApi(server.url, 'DELETE', `/_synapse/admin/v1/rooms/${room}`, {
      token,
      body: { purge: true },
    });
    assert.equal(purged.status, 200, purged.raw);
    assert.deepEqual(await countStateRows(state), [0, 0, 0]);
    await server.stop();
    assert.deepEqual(await problems(main, state), []);

    // Events in the database `main` can refer to state groups that were assigned after the backup of the other
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

  it('starts on a single database once hearth database join has completed, even when an earlier call was interrupted, and then refuses to start on two databases', async () => {
    const main = await databases.empty();
    const state = await databases.empty();
    let server = await databases.start(twoDatabases(main, state));
    const token = await server.register('ann');
    const room = await server.createRoom(token);
    const since = String((await server.api('GET', 'sync', token)).body['next_batch']);
    await server.setTopic(token, room, 'Of two');
    const config = configure(join(databases.folder, 'joined'), twoDatabases(main, state));
    const joinDatabases = () => joinConfiguredDatabases({ config });
    await server.stop();
    const countsBefore = await countStateRows(state);

    // Simulates a kill of the command before its last step.
    const stateDatabase = await openDatabase(state, { log: silentLogger });
    await writeMark(stateDatabase, { state: 'moved', moveId: 'any', other: 'main' }, 0);
    await stateDatabase.close();
    await assert.rejects(databases.start(twoDatabases(main, state)), /this database was moved to main/);
    await assert.rejects(databases.start(oneDatabase(main)), /has only the data store main/);
    await joinDatabases();
    assert.deepEqual(await countStateRows(main), countsBefore);
    await assert.rejects(
      databases.start(twoDatabases(main, state)),
      /this database was moved to the PostgreSQL database/,
    );
    await assert.rejects(joinDatabases(), /has the state groups already/);

    server = await databases.start(oneDatabase(main));
    assert.match((await server.api('GET', `sync?since=${since}`, token)).raw, /"topic":"Of two"/);
    assert.equal((await server.setTopic(token, room, 'Of one')).status, 200);
    assert.ok((await countStateRows(main))[0]! > countsBefore[0]!);
    await server.stop();
    assert.deepEqual(await problems(main, main), []);
  });
});
