import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'node:test';
import { stringify } from 'yaml';
import { createHomeserver } from '../../../src/homeserver.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { type DatabaseOptions, moveDatabase, openDatabase } from '../../../src/kernel/database/index.ts';
import { silentLogger } from '../../../src/kernel/observability/index.ts';
import { systemRandomness } from '../../../src/kernel/randomness.ts';
import { migrations, slices } from '../../../src/slices.ts';
import { configure, hearth } from '../../processes/server-process.ts';
import { openContents } from '../../support/databases/database-contents.ts';
import { databaseOption } from '../../support/databases/database-option.ts';
import { makeTestDatabase, selectedDatabases } from '../../support/databases/databases.ts';
import { callApi } from '../../support/servers/api-call.ts';
import { builtHearth } from '../../support/servers/built-hearth.ts';
import { startTestServer, type TestServer, testConfiguration } from '../../support/servers/server.ts';
import { after, before, test } from '../bounded-test.ts';
import { eventually } from '../eventually.ts';

const clientApi = '/_matrix/client/v3';

/** Fills a server with rooms, encryption keys, media, pushers and texts for the search. */
async function fill(server: TestServer) {
  const ann = await server.register('ann');
  const bob = await server.register('bob');
  const room = await server.api('POST', `${clientApi}/createRoom`, {
    token: ann.token,
    body: { name: 'Moved', invite: [bob.userId], preset: 'trusted_private_chat' },
  });
  const roomId = String(room.body['room_id']);
  const path = `${clientApi}/rooms/${encodeURIComponent(roomId)}`;
  const call = async (method: string, to: string, token: string, body: object) => {
    const answer = await server.api(method, to, { token, body });
    assert.equal(answer.status, 200, answer.raw);
    return answer;
  };
  await call('POST', `${path}/join`, bob.token, {});
  for (let count = 0; count < 20; count += 1)
    await call('PUT', `${path}/send/m.room.message/${count}`, ann.token, {
      msgtype: 'm.text',
      body: `word${count} \u{1F600}`,
    });
  await call('POST', `${clientApi}/keys/upload`, ann.token, {
    one_time_keys: { 'curve25519:AAAA': 'A'.repeat(43) },
  });
  await call('POST', `${clientApi}/pushers/set`, bob.token, {
    app_id: 'app',
    app_display_name: 'App',
    device_display_name: 'Phone',
    kind: 'http',
    lang: 'en',
    pushkey: 'key',
    data: { url: 'https://push.example/_matrix/push/v1/notify' },
  });
  await call(
    'PUT',
    `${clientApi}/user/${encodeURIComponent(ann.userId)}/account_data/org.example`,
    ann.token,
    {
      kept: true,
    },
  );
  await server.api('POST', '/_matrix/media/v3/upload', {
    token: ann.token,
    body: Buffer.from('an image'),
    headers: { 'content-type': 'text/plain' },
  });
  return { ann, bob, path, call };
}

/**
 * Returns an answer without sync tokens and ages of events, which differ between processes, and with `state` sorted by
 * event id, because the specification defines no order of it.
 */
function comparable(answer: string): string {
  const parsed = JSON.parse(answer, (name, value) => {
    if (name === 'next_batch' || name === 'prev_batch' || name === 'age') return '';
    if (name !== 'state') return value;
    const byId = (one: { event_id: string }, other: { event_id: string }) =>
      one.event_id < other.event_id ? -1 : 1;
    return { ...value, events: value.events?.sort(byId) };
  });
  return JSON.stringify(parsed);
}

/** Number of rows that `addManyRows` adds. */
const manyRows = 8_000;

/** Adds rows of another server's transactions, so that a copy takes long enough to be killed in the middle. */
async function addManyRows(options: DatabaseOptions): Promise<void> {
  const database = await openDatabase(options, { log: silentLogger });
  const rows = Array.from({ length: manyRows }, (_, number) => ['far.example', `txn${number}`, 1, '{}']);
  const columns = 'origin, txn_id, received_ts, answer';
  await database.batch([{ sql: `insert into received_transactions (${columns}) values (?, ?, ?, ?)`, rows }]);
  await database.close();
}

/**
 * Starts a server on a database in this process, and stops it.
 * @param clients access tokens of the users, and a sync token of Bob
 * @returns answers of the server, in a form that can be compared
 */
async function answersOf(
  databaseOptions: DatabaseOptions,
  { ann, bob, since }: { ann: string; bob: string; since: string },
) {
  const homeserver = createHomeserver({
    configuration: testConfiguration({ presence: { presence: { enabled: false } } }),
    clock: systemClock,
    randomness: systemRandomness,
    log: silentLogger,
    databaseOptions,
  });
  const { addresses } = await homeserver.start();
  const get = async (token: string, route: string, query = {}) =>
    comparable((await callApi(addresses[0]!, 'GET', `${clientApi}/${route}`, { token, query })).raw);
  const post = async (token: string, route: string, body: object) =>
    comparable((await callApi(addresses[0]!, 'POST', `${clientApi}/${route}`, { token, body })).raw);
  const events = { search_categories: { room_events: { search_term: 'word7' } } };
  const answers = {
    changes: await get(bob, 'sync', { since, timeout: 0 }),
    syncOfBob: await get(bob, 'sync', { timeout: 0 }),
    syncOfAnn: await get(ann, 'sync', { timeout: 0 }),
    pushers: await get(bob, 'pushers'),
    search: await post(ann, 'search', events),
    directory: await post(bob, 'user_directory/search', { search_term: 'anna' }),
  };
  await homeserver.stop();
  return answers;
}

for (const kind of selectedDatabases(import.meta.url)) {
  const otherKind = kind === 'sqlite' ? 'postgres' : 'sqlite';
  describe(`hearth database move from ${kind} to ${otherKind}`, () => {
    let folder = '';
    let server: TestServer | undefined;
    let target: Awaited<ReturnType<typeof makeTestDatabase>> | undefined;
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'hearth-move-'));
      server = await startTestServer({
        database: kind,
        config: { presence: { presence: { enabled: false } } },
      });
      target = await makeTestDatabase(otherKind);
    });
    after(async () => {
      await server?.stop();
      await target?.remove();
      rmSync(folder, { recursive: true, force: true });
    });

    test('copies while the server runs, survives kill -9, and a server on the new database sends the same answers to old sync tokens', async () => {
      const from = server!.databaseOptions;
      const to = target!.options;
      const paths = configure(folder, { database: databaseOption(from) });
      const toFile = join(folder, 'new.yaml');
      writeFileSync(toFile, stringify({ database: databaseOption(to) }));
      const args = ['database', 'move', ...paths.flatMap((path) => ['-c', path]), '--to', toFile];
      const { ann, bob, path, call } = await fill(server!);
      const since = String(
        (await server!.api('GET', `${clientApi}/sync`, { token: bob.token })).body['next_batch'],
      );

      const first = await moveDatabase({
        source: from,
        target: to,
        migrations,
        textIndexes: slices.flatMap(({ textIndexes = [] }) => textIndexes),
        randomness: systemRandomness,
        log: silentLogger,
        overwrites: false,
        onProgress: () => {},
      });
      assert.equal(first.isComplete, false);
      await call('PUT', `${path}/send/m.room.message/later`, ann.token, {
        msgtype: 'm.text',
        body: 'after the first pass',
      });
      await call('PUT', `${clientApi}/profile/${encodeURIComponent(ann.userId)}/displayname`, ann.token, {
        displayname: 'Anna',
      });

      await server!.homeserver.stop();
      await addManyRows(from);
      const child = spawn(process.execPath, [await builtHearth(), ...args], { stdio: 'ignore' });
      const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
      const contents = await openContents(to);
      const copied = async () => (await contents.rows('received_transactions')).length;
      await eventually('a part of the rows', async () => ((await copied()) > 0 ? true : undefined));
      child.kill('SIGKILL');
      await ended;
      assert.ok((await copied()) < manyRows, 'the command was killed in the middle');
      await contents.close();

      const clients = { ann: ann.token, bob: bob.token, since };
      const expected = await answersOf(from, clients);
      assert.match(expected.changes, /after the first pass/);
      assert.match(expected.search, /word7/);
      assert.match(expected.directory, /Anna/);

      const second = await hearth(args);
      assert.deepEqual([second.code, second.err], [0, ''], second.err);
      assert.match(
        second.out,
        new RegExp(
          `^All tables are equal in both databases:\\n[^]* {2}received_transactions: ${manyRows} rows, hash [0-9a-f]{30}\\n`,
        ),
      );
      await assert.rejects(answersOf(from, clients), /this database was moved to the/);
      assert.deepEqual(await answersOf(to, clients), expected);
    });
  });
}
