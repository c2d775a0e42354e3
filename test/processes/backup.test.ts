import assert from 'node:assert/strict';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, it } from 'node:test';
import { backup } from '../../src/commands/backup/backup.ts';
import { backupPaths } from '../../src/commands/backup/manifest.ts';
import { fetchFromStore } from '../../src/commands/backup/store/fetch-from-store.ts';
import { openStore } from '../../src/commands/backup/store/open-store.ts';
import { addToIndex, readIndex, writeIndex } from '../../src/commands/backup/store/stored-backup.ts';
import { readConfiguration } from '../../src/commands/configuration-files.ts';
import { claimFile, openDatabase, openDatabaseExclusively } from '../../src/kernel/database/index.ts';
import { writeMark } from '../../src/kernel/database/transfer/move-marks.ts';
import { silentLogger } from '../../src/kernel/observability/index.ts';
import { configure, hearth, type ServerProcess, startProcess } from './server-process.ts';

const clientApi = '/_matrix/client/v3';
const slidingSync = '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync';

/** Logs in to an account, or registers it. */
async function session(server: ServerProcess, kind: 'login' | 'register', user: string) {
  const body =
    kind === 'login'
      ? { type: 'm.login.password', identifier: { type: 'm.id.user', user }, password: 'correct horse' }
      : { username: user, password: 'correct horse', auth: { type: 'm.login.dummy' } };
  const answer = await server.api('POST', `${clientApi}/${kind}`, { body });
  assert.equal(answer.status, 200, answer.raw);
  return { token: String(answer.body['access_token']), userId: String(answer.body['user_id']) };
}

/** Sends messages one after the other until it is stopped, and records which were acknowledged. */
class ConstantSender {
  readonly acknowledged: string[] = [];
  #isStopped = false;
  readonly #sending: Promise<void>;

  constructor(server: ServerProcess, token: string, roomId: string) {
    this.#sending = this.#send(server, token, roomId);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#sending;
  }

  async #send(server: ServerProcess, token: string, roomId: string): Promise<void> {
    for (let number = 0; !this.#isStopped; number += 1) {
      const path = `${clientApi}/rooms/${encodeURIComponent(roomId)}/send/m.room.message/${number}`;
      const body = { msgtype: 'm.text', body: `${number} ${'long '.repeat(2_000)}` };
      const answer = await server.api('PUT', path, { token, body });
      assert.equal(answer.status, 200, answer.raw);
      this.acknowledged.push(String(answer.body['event_id']));
    }
  }
}

describe('hearth backup and hearth restore on SQLite', () => {
  let folder = '';
  let running: ServerProcess | undefined;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'hearth-backup-'));
  });
  after(async () => {
    await running?.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  it('backs up a server while messages are sent, and restores it for clients with sync tokens from after the backup', {
    timeout: 600_000,
  }, async () => {
    const home = join(folder, 'home');
    const backup = join(folder, 'backup');
    const paths = configure(home);
    let server = await startProcess(paths);
    running = server;
    const { token, userId } = await session(server, 'register', 'ann');
    const room = await server.api('POST', `${clientApi}/createRoom`, { token, body: { name: 'Before' } });
    const roomId = String(room.body['room_id']);
    const upload = await server.api('POST', '/_matrix/media/v3/upload', {
      token,
      body: Buffer.from('an image'),
      headers: { 'content-type': 'text/plain' },
    });
    const mediaId = String(upload.body['content_uri']).slice('mxc://'.length);
    const device = await server.api('POST', `${clientApi}/keys/upload`, {
      token,
      body: { one_time_keys: { 'curve25519:AAAA': 'A'.repeat(43) } },
    });
    assert.equal(device.status, 200, device.raw);
    const sender = new ConstantSender(server, token, roomId);
    while (sender.acknowledged.length < 100) await new Promise((resolve) => setTimeout(resolve, 10));
    const acknowledgedBefore = [...sender.acknowledged];

    const backedUp = await hearth(['backup', backup, ...paths.flatMap((path) => ['-c', path])]);
    assert.deepEqual([backedUp.code, backedUp.err], [0, '']);
    assert.match(
      backedUp.out,
      /^Backed up example\.org to \S+: the database, 1 media files, the configuration and the keys/,
    );
    assert.match(server.log(), /"logger":"control".*The database was copied for a backup/);
    await sender.stop();
    assert.ok(sender.acknowledged.length > acknowledgedBefore.length, 'messages were sent during the backup');
    const copy = new DatabaseSync(join(backup, 'database', 'homeserver.db'), { readOnly: true });
    assert.deepEqual({ ...copy.prepare('pragma integrity_check').get() }, { integrity_check: 'ok' });
    copy.close();

    // The server loses its data from after the backup, but clients keep the tokens that they received.
    const sliding = await server.api('POST', slidingSync, { token, body: {} });
    const filter = await server.api('POST', `${clientApi}/user/${encodeURIComponent(userId)}/filter`, {
      token,
      body: { room: { timeline: { limit: 7 } } },
    });
    const newDevice = await session(server, 'login', 'ann');
    const newUser = await session(server, 'register', 'bob');
    const newest = await server.api('GET', `${clientApi}/sync`, { token });
    const since = String(newest.body['next_batch']);
    const key = await server.api('GET', '/_matrix/key/v2/server');
    const whileRunning = await hearth(['restore', backup, '--overwrite']);
    assert.deepEqual(
      [whileRunning.code, /is in use by another server/.test(whileRunning.err)],
      [1, true],
      whileRunning.err,
    );
    await server.kill();
    renameSync(home, join(folder, 'lost'));

    const restored = await hearth(['restore', backup]);
    assert.deepEqual([restored.code, restored.err], [0, '']);
    assert.match(restored.out, /^Restored example\.org as it was at 20/);
    server = await startProcess(paths);
    running = server;
    const withSince = { token, query: { since, timeout: 0 } };
    const firstSync = await server.api('GET', `${clientApi}/sync`, withSince);
    assert.equal(firstSync.status, 200, firstSync.raw);
    const counts = firstSync.body['device_one_time_keys_count'] as Record<string, number>;
    assert.equal(counts['signed_curve25519'] ?? 0, 0);
    assert.equal(counts['curve25519'] ?? 0, 0, 'keys that may have been claimed are not offered again');
    const sent = await server.api(
      'PUT',
      `${clientApi}/rooms/${encodeURIComponent(roomId)}/send/m.room.message/after`,
      { token, body: { msgtype: 'm.text', body: 'After the restore' } },
    );
    assert.equal(sent.status, 200, sent.raw);
    const secondSync = await server.api('GET', `${clientApi}/sync`, withSince);
    const joined = (
      secondSync.body['rooms'] as { join: Record<string, { timeline: { events: { event_id: string }[] } }> }
    ).join;
    assert.deepEqual(
      joined[roomId]?.timeline.events.map(({ event_id }) => event_id),
      [sent.body['event_id']],
    );
    const thirdSync = await server.api('GET', `${clientApi}/sync`, {
      token,
      query: { since: String(secondSync.body['next_batch']), timeout: 0 },
    });
    assert.equal(thirdSync.status, 200);
    for (const eventId of acknowledgedBefore) {
      const path = `${clientApi}/rooms/${encodeURIComponent(roomId)}/event/${encodeURIComponent(eventId)}`;
      assert.equal((await server.api('GET', path, { token })).status, 200, eventId);
    }
    const media = await fetch(`${server.url}/_matrix/client/v1/media/download/${mediaId}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    assert.equal(await media.text(), 'an image');
    const sameKey = await server.api('GET', '/_matrix/key/v2/server');
    assert.deepEqual(sameKey.body['verify_keys'], key.body['verify_keys']);

    const unknownFilter = await server.api('GET', `${clientApi}/sync`, {
      token,
      query: { since, timeout: 0, filter: String(filter.body['filter_id']) },
    });
    assert.ok([400, 404].includes(unknownFilter.status), unknownFilter.raw);
    const pos = String(sliding.body['pos']);
    const slidingResponse = await server.api('POST', slidingSync, { token, query: { pos }, body: {} });
    assert.deepEqual([slidingResponse.status, slidingResponse.body['errcode']], [400, 'M_UNKNOWN_POS']);
    for (const { token: lostToken } of [newDevice, newUser]) {
      const refused = await server.api('GET', `${clientApi}/sync`, {
        token: lostToken,
        query: { since, timeout: 0 },
      });
      assert.deepEqual([refused.status, refused.body['errcode']], [401, 'M_UNKNOWN_TOKEN']);
    }
    const newSession = await session(server, 'login', 'ann');
    assert.equal(
      (
        await server.api('GET', `${clientApi}/sync`, {
          token: newSession.token,
          query: { since, timeout: 0 },
        })
      ).status,
      200,
    );
    await server.stop();
    running = undefined;
  });

  it('refuses a backup to a store while another backup to a store runs, and keeps the backups that other processes have added to the list of the store', async () => {
    const home = join(folder, 'listed');
    const paths = configure(home);
    new DatabaseSync(join(home, 'homeserver.db')).close();
    const store = join(folder, 'store');
    mkdirSync(join(home, 'media'));
    const release = claimFile(join(home, 'media', 'backup-work'));
    const addBackup = () => backup(undefined, { store, config: paths });
    await assert.rejects(addBackup(), /^CommandFailure: another backup of this server to a store is running/);
    release();

    const { provider, close } = await openStore(store, readConfiguration(paths, { environment: {} }).values);
    const entry = (name: string) => ({ name, createdTs: 1, serverName: 'example.org' });
    const names = async () => (await readIndex(provider)).backups.map(({ name }) => name);
    await writeIndex(provider, { storeFormat: 1, backups: [entry('a'), entry('b')] });
    const outdatedIndex = await readIndex(provider);
    for (const name of ['c', 'd']) await addToIndex(provider, outdatedIndex, entry(name));
    assert.deepEqual(await names(), ['a', 'b', 'c', 'd']);
    await writeIndex(provider, { storeFormat: 1, backups: ['b', 'c', 'd'].map(entry) });
    await assert.rejects(
      addToIndex(provider, outdatedIndex, entry('e')),
      /has deleted older backups of the store/,
    );
    assert.deepEqual(await names(), ['b', 'c', 'd']);
    await close();
  });

  it('uploads damaged and missing pieces of a store again with --verify, and refuses a store that is unexpectedly empty', async () => {
    const home = join(folder, 'verified');
    const paths = configure(home);
    const path = join(home, 'homeserver.db');
    new DatabaseSync(path).exec('create table notes (text text)');
    const media = join(home, 'media', 'local');
    mkdirSync(media, { recursive: true });
    writeFileSync(join(media, 'image'), 'pixels');
    const store = join(folder, 'verified-store');
    const addBackup = (more: object = {}) => backup(undefined, { store, config: paths, ...more });
    await addBackup();
    const pieces = globSync('pieces/*/*', { cwd: store }).map((piece) => join(store, piece));
    assert.ok(pieces.length > 2);
    for (const [index, piece] of pieces.entries())
      if (index % 2 === 0) writeFileSync(piece, 'damaged');
      else rmSync(piece);
    await addBackup({ verify: true });
    await fetchFromStore(join(folder, 'verified-copy'), { store, config: paths });
    assert.equal(readFileSync(join(folder, 'verified-copy', backupPaths.media, 'image'), 'utf8'), 'pixels');
    rmSync(store, { recursive: true });
    await assert.rejects(addBackup(), /is empty, although the last backup was written to it: is it mounted/);
  });

  it('refuses to back up a database whose contents were moved to another database', async () => {
    const home = join(folder, 'moved');
    const paths = configure(home);
    const database = await openDatabase(
      { kind: 'sqlite', path: join(home, 'homeserver.db') },
      { log: silentLogger },
    );
    await writeMark(database, { state: 'moved', moveId: 'move', other: 'the other one' }, 1);
    await database.close();
    await assert.rejects(
      backup(join(folder, 'outdated'), { config: paths }),
      /^StartFailure: this database was moved to the other one/,
    );
  });

  it('backs up a stopped server, refuses to overwrite files in a restore, continues a killed restore, and detects damaged backups', {
    timeout: 600_000,
  }, async () => {
    const home = join(folder, 'stopped');
    const backup = join(folder, 'stopped-backup');
    const paths = configure(home);
    const flags = paths.flatMap((path) => ['-c', path]);
    const withoutDatabase = await hearth(['backup', backup, ...flags]);
    assert.match(withoutDatabase.err, /^hearth: there is no database \S+homeserver\.db\n$/);
    await (await startProcess(paths)).stop();
    assert.equal(existsSync(join(home, 'homeserver.db-control')), false);
    const backedUp = await hearth(['backup', backup, ...flags]);
    assert.deepEqual([backedUp.code, backedUp.err], [0, '']);
    const secondBackup = await hearth(['backup', backup, ...flags]);
    assert.match(secondBackup.err, /^hearth: \S+ is not empty: give a new directory for each backup\n$/);

    const refused = await hearth(['restore', backup]);
    assert.match(refused.err, /^hearth: \S+homeserver\.db exists: move it away, or give --overwrite/);
    const key = join(home, 'example.org.signing.key');
    writeFileSync(key, 'another');
    assert.match((await hearth(['restore', backup])).err, /signing\.key exists/);
    // Files that a killed restore leaves beside the database of a server that was killed before.
    const database = join(home, 'homeserver.db');
    writeFileSync(`${database}.restoring`, 'a part');
    writeFileSync(`${database}-wal`, 'acknowledged');
    await assert.rejects(
      openDatabaseExclusively({ kind: 'sqlite', path: database }, { log: silentLogger }, () => {}),
      /^StartFailure: the restore of the database \S+ was interrupted: call the same "hearth restore" again/,
    );
    const replaced = await hearth(['restore', backup, '--overwrite']);
    assert.deepEqual([replaced.code, replaced.err], [0, '']);
    const [keptWal] = globSync('homeserver.db.before-restore-*-wal', { cwd: home });
    assert.equal(
      readFileSync(join(home, keptWal!), 'utf8'),
      'acknowledged',
      'the earlier database is complete',
    );
    assert.deepEqual(globSync('homeserver.db{.restoring,-wal}', { cwd: home }), []);
    assert.match(readFileSync(key, 'utf8'), /^ed25519 /);
    const keptFiles = readdirSync(home).filter((name) => /\.before-restore-.*Z$/.test(name));
    assert.deepEqual(keptFiles.map((name) => name.split('.before')[0]).sort(), [
      'example.org.signing.key',
      'homeserver.db',
    ]);

    const elsewhere = join(folder, 'elsewhere');
    const otherPaths = configure(elsewhere);
    rmSync(join(elsewhere, 'example.org.signing.key'));
    const restoredElsewhere = await hearth([
      'restore',
      backup,
      ...otherPaths.flatMap((path) => ['-c', path]),
    ]);
    assert.deepEqual([restoredElsewhere.code, restoredElsewhere.err], [0, '']);
    assert.equal(readFileSync(join(elsewhere, 'example.org.signing.key'), 'utf8'), readFileSync(key, 'utf8'));
    await (await startProcess(otherPaths)).stop();

    const file = join(backup, 'database', 'homeserver.db');
    const bytes = readFileSync(file);
    bytes[5_000] = (bytes[5_000] ?? 0) ^ 1;
    writeFileSync(file, bytes);
    assert.match(
      (await hearth(['restore', backup, '--overwrite'])).err,
      /^hearth: the backup is damaged: \S+homeserver\.db has changed/,
    );
    rmSync(join(backup, 'backup.json'));
    assert.match((await hearth(['restore', backup])).err, /is not a complete backup: it has no backup\.json/);
  });
});
