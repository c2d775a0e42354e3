import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'node:test';
import S3rver from 's3rver';
import { fetchFromStore } from '../../../src/commands/backup/store/fetch-from-store.ts';
import { configure, hearth, type ServerProcess, startProcess } from '../../processes/server-process.ts';
import { builtHearth } from '../../support/servers/built-hearth.ts';
import { after, before, test } from '../bounded-test.ts';
import { eventually } from '../eventually.ts';

const clientApi = '/_matrix/client/v3';
const credentials = { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' };

describe('hearth backup --store and hearth restore --store', () => {
  let folder = '';
  let s3: S3rver | undefined;
  let running: ServerProcess | undefined;
  let address = '';
  before(async () => {
    Object.assign(process.env, credentials);
    folder = mkdtempSync(join(tmpdir(), 'hearth-store-'));
    const directory = join(folder, 's3');
    mkdirSync(directory);
    s3 = new S3rver({
      address: '127.0.0.1',
      port: 0,
      silent: true,
      directory,
      configureBuckets: [{ name: 'backups', configs: [] }],
    });
    const { port } = await s3.run();
    address = `s3://backups/hearth?endpoint=http://127.0.0.1:${port}&region=us-east-1`;
  });
  after(async () => {
    await running?.kill();
    await s3?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Files of the pieces in the storage, which s3rver names after their objects. */
  const pieces = () => globSync('s3/backups/hearth/pieces/**/*_object', { cwd: folder });
  const sentBytes = (out: string) => Number(/of which (\d+) were sent/.exec(out)?.[1]);

  /** Runs a command, and kills it by SIGKILL as soon as `when` holds. */
  async function runAndKill(args: readonly string[], when: () => boolean): Promise<void> {
    const env = { ...process.env, ...credentials };
    const child = spawn(process.execPath, [await builtHearth(), ...args], { stdio: 'ignore', env });
    const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
    await eventually(
      'the point to kill at',
      () => (when() || child.exitCode !== null ? true : undefined),
      30_000,
    );
    child.kill('SIGKILL');
    await ended;
    assert.equal(child.exitCode, null, 'the command was killed before its end');
  }

  test('sends only changed pieces, survives kill -9, and restores a lost server from S3-compatible storage', async () => {
    const home = join(folder, 'home');
    const paths = configure(home);
    let server = await startProcess(paths);
    running = server;
    const user = { username: 'ann', password: 'correct horse', auth: { type: 'm.login.dummy' } };
    const token = String(
      (await server.api('POST', `${clientApi}/register`, { body: user })).body['access_token'],
    );
    const upload = (body: Buffer) =>
      server.api('POST', '/_matrix/media/v3/upload', {
        token,
        body,
        headers: { 'content-type': 'text/plain' },
      });
    const image = randomBytes(3_000_000);
    const mediaId = String((await upload(image)).body['content_uri']).slice('mxc://'.length);
    const { body } = await server.api('POST', `${clientApi}/createRoom`, { token, body: { name: 'Before' } });
    const room = encodeURIComponent(String(body['room_id']));
    const backup = ['backup', '--store', address, ...paths.flatMap((path) => ['-c', path])];

    await runAndKill(backup, () => pieces().length > 0);
    assert.equal(globSync('s3/backups/hearth/index.json*', { cwd: folder }).length, 0, 'no backup is listed');
    const first = await hearth(backup, credentials);
    assert.deepEqual([first.code, first.err], [0, '']);
    assert.ok(sentBytes(first.out) > 3_000_000);
    assert.equal(existsSync(join(home, 'media', 'backup-work')), false);
    const message = { msgtype: 'm.text', body: 'newer' };
    await server.api('PUT', `${clientApi}/rooms/${room}/send/m.room.message/1`, { token, body: message });
    const piecesBefore = pieces().length;
    const second = await hearth([...backup, '--verify'], credentials);
    assert.deepEqual([second.code, second.err], [0, '']);
    assert.ok(sentBytes(second.out) < 1_500_000, `media are not sent again: ${second.out}`);
    assert.ok(pieces().length < piecesBefore + 4);
    const since = String((await server.api('GET', `${clientApi}/sync`, { token })).body['next_batch']);
    await server.kill();
    renameSync(home, join(folder, 'lost'));

    const directory = join(folder, 'fetched');
    const restore = ['restore', directory, '--store', address];
    await runAndKill(restore, () => existsSync(join(directory, 'database')));
    assert.equal(existsSync(join(home, 'homeserver.db')), false);
    const restored = await hearth(restore, credentials);
    assert.deepEqual([restored.code, restored.err], [0, '']);
    server = await startProcess(paths);
    running = server;
    const synced = await server.api('GET', `${clientApi}/sync`, { token, query: { since, timeout: 0 } });
    assert.equal(synced.status, 200, synced.raw);
    const messages = await server.api('GET', `${clientApi}/rooms/${room}/messages`, {
      token,
      query: { dir: 'b' },
    });
    assert.match(messages.raw, /"body":"newer"/);
    const media = await fetch(`${server.url}/_matrix/client/v1/media/download/${mediaId}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    assert.ok(Buffer.from(await media.arrayBuffer()).equals(image));
    await server.stop();
    running = undefined;

    const listedBackups = JSON.parse(
      readFileSync(
        join(folder, globSync('s3/backups/hearth/index.json*_object', { cwd: folder })[0]!),
        'utf8',
      ),
    ).backups;
    const backupWithKeep = await hearth([...backup, '--keep', '1'], credentials);
    assert.match(backupWithKeep.out, /2 older backups were deleted/);
    const fetchBackup = (directory: string, at?: string) =>
      fetchFromStore(join(folder, directory), { config: paths, store: address, ...(at && { at }) });
    await assert.rejects(fetchBackup('older', listedBackups[0].name), /the store has no backup/);
    const [damaged] = pieces();
    const bytes = readFileSync(join(folder, damaged!));
    writeFileSync(join(folder, damaged!), Buffer.concat([bytes.subarray(1), Buffer.of((bytes[0] ?? 0) ^ 1)]));
    await assert.rejects(
      fetchBackup('third'),
      /^CommandFailure: the piece [0-9a-f]{64} of the store is damaged/,
    );
  });
});
