import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'yaml';
import { configure, hearth, type ServerProcess, startProcess } from '../../processes/server-process.ts';
import { builtHearth } from '../../support/servers/built-hearth.ts';
import { adminRegistrationBody, adminRegistrationPath } from '../../support/users/register-admin.ts';
import { after, before, test } from '../bounded-test.ts';
import { eventually } from '../eventually.ts';

/** Number of small files, whose deletion takes several transactions. */
const smallFiles = 450;

/** Number of large files, which are moved. */
const largeFiles = 12;

const largeFile = (index: number) => Buffer.alloc(4 * 1024 * 1024, `large file ${index} `);

describe('kill -9 of the media repository', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-killed-'));
  const store = join(folder, 'media');
  const provider = join(folder, 'provider');
  let paths: readonly string[];
  let server: ServerProcess;
  let token: string;
  before(async () => {
    paths = configure(folder);
    const [, secretFile] =
      /^registration_shared_secret_path: (.+)$/m.exec(readFileSync(paths[0]!, 'utf8')) ?? [];
    writeFileSync(secretFile!, 'shared secret');
    server = await startProcess(paths);
    const { nonce } = (await server.api('GET', adminRegistrationPath)).body;
    const body = adminRegistrationBody('admin', nonce);
    token = String((await server.api('POST', adminRegistrationPath, { body })).body['access_token']);
  });
  after(async () => {
    await server?.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Returns the paths of all files below a directory, relative to it. */
  const filesIn = (directory: string) =>
    existsSync(directory)
      ? readdirSync(directory, { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map((entry) => relative(directory, join(entry.parentPath, entry.name)))
          .sort()
      : [];
  /** Returns the path of each file that has a row, relative to `local`, with its hash. */
  const rows = () => {
    const database = new DatabaseSync(join(folder, 'homeserver.db'), { readOnly: true, timeout: 60_000 });
    try {
      const mediaRows = database.prepare('SELECT file_id, sha256 FROM local_media').all();
      return new Map<string, string>(
        mediaRows.map(({ file_id, sha256 }) => {
          const id = String(file_id);
          return [`${id.slice(0, 2)}/${id.slice(2, 4)}/${id.slice(4)}`, String(sha256)] as const;
        }),
      );
    } finally {
      database.close();
    }
  };
  const hashOf = (...path: string[]) =>
    createHash('sha256')
      .update(readFileSync(join(...path)))
      .digest('hex');
  const upload = async (body: Buffer) => {
    const headers = { 'content-type': 'text/plain' };
    const answer = await server.api('POST', '/_matrix/media/v3/upload', { token, body, headers });
    return String(answer.body['content_uri']).slice('mxc://'.length);
  };

  const deleteAll = () =>
    server.api('POST', '/_synapse/admin/v1/media/delete', { token, query: { before_ts: 4_000_000_000_000 } });

  test('a kill during uploads and a deletion leaves each row with its whole file, and no other file, after the next start', async () => {
    for (let index = 0; index < smallFiles; index += 50)
      await Promise.all(Array.from({ length: 50 }, (_, offset) => upload(Buffer.from(`${index + offset}`))));
    // This upload never ends.
    const unfinished = request(`${server.url}/_matrix/media/v3/upload`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-length': 10_000_000 },
    });
    unfinished.on('error', () => undefined);
    unfinished.write(Buffer.alloc(3_000_000, 'half'));
    await eventually('the first bytes of an upload', () => filesIn(join(store, 'incoming')).length > 0);
    const deletion = deleteAll().catch(() => undefined);
    while (filesIn(join(store, 'local')).length >= smallFiles - 10) await sleep(1);
    await server.kill();
    await deletion;
    const extra = join(folder, 'provider.yaml');
    const copies = { module: 'file_system', store_local: true, config: { directory: provider } };
    writeFileSync(extra, stringify({ media_storage_providers: [copies] }));
    server = await startProcess(paths);
    paths = [...paths, extra];
    const remaining = rows();
    assert.deepEqual(filesIn(join(store, 'local')), [...remaining.keys()].sort());
    for (const [path, hash] of remaining) assert.equal(hashOf(store, 'local', path), hash);
    assert.deepEqual(filesIn(join(store, 'incoming')), []);
    assert.equal((await deleteAll()).body['total'], remaining.size, 'the next call deletes the rest');
    assert.deepEqual(filesIn(join(store, 'local')), []);
  });

  test('a kill during hearth media move leaves each file whole on the local disk or at the provider, and the next call completes the move', async () => {
    const media: string[] = [];
    for (let index = 0; index < largeFiles; index++) media.push(await upload(largeFile(index)));
    const flags = paths.flatMap((path) => ['-c', path]);
    const command = [await builtHearth(), 'media', 'move', ...flags];
    const child = spawn(process.execPath, command, { stdio: 'ignore' });
    const ended = new Promise((resolve) => child.once('close', resolve));
    while (filesIn(provider).length < 3 && child.exitCode === null) await sleep(1);
    child.kill('SIGKILL');
    await ended;
    const expectedHashes = rows();
    /** Checks all files in these places. @returns the paths of the files with rows */
    const checkedFiles = (...places: string[]) =>
      new Set(
        places.flatMap((place) =>
          filesIn(place).map((path) => {
            assert.equal(hashOf(place, path), expectedHashes.get(path), path);
            return path;
          }),
        ),
      );
    assert.deepEqual(
      checkedFiles(join(store, 'local'), join(provider, 'local')),
      new Set(expectedHashes.keys()),
    );

    const done = await hearth(['media', 'move', ...flags]);
    assert.equal(done.code, 0, done.err);
    assert.deepEqual(checkedFiles(join(provider, 'local')), new Set(expectedHashes.keys()));
    for (const place of [join(store, 'local'), join(store, 'incoming'), join(provider, 'incoming')])
      assert.deepEqual(filesIn(place), []);
    await server.stop();
    server = await startProcess(paths);
    const response = await fetch(`${server.url}/_matrix/client/v1/media/download/${media[7]}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    assert.ok(Buffer.from(await response.arrayBuffer()).equals(largeFile(7)));
  });
});
