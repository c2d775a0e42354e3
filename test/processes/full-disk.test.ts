import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { stringify } from 'yaml';
import { eventually } from '../clients/eventually.ts';
import { configure, hearth, type ServerProcess, startProcess } from './server-process.ts';

const clientApi = '/_matrix/client/v3';
const kibibyte = 1_024;

/** The test fills a small file system in memory, which only root may mount. */
const skip = process.getuid?.() === 0 ? false : 'only root may mount a small disk';

describe('a server whose disk is full', { skip }, () => {
  let folder = '';
  let disk = '';
  let running: ServerProcess | undefined;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'hearth-full-'));
    disk = join(folder, 'disk');
    mkdirSync(disk);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', disk]);
  });
  afterEach(async () => {
    await running?.kill();
    running = undefined;
  });
  after(() => {
    execFileSync('umount', ['-l', disk]);
    rmSync(folder, { recursive: true, force: true });
  });

  const filler = () => join(disk, 'filler');
  /** @param free bytes of free space that are left */
  const fill = (free = 0) => {
    const { bavail, bsize } = statfsSync(disk);
    try {
      writeFileSync(filler(), Buffer.alloc(bavail * bsize - free));
    } catch (error) {
      // The server has used a part of the free space in the meantime: the disk is full as well.
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
    }
  };

  it('answers 507 with a reason while the disk is full, reports it in /health, and works again without a restart once there is free space', {
    timeout: 600_000,
  }, async () => {
    const paths = configure(join(folder, 'home'), {
      database: { name: 'sqlite3', args: { database: join(disk, 'homeserver.db') } },
      admin_contact: 'mailto:admin@example.org',
    });
    const server = await startProcess(paths);
    running = server;
    const register = { username: 'ann', password: 'correct horse', auth: { type: 'm.login.dummy' } };
    const account = await server.api('POST', `${clientApi}/register`, { body: register });
    const token = String(account.body['access_token']);
    const room = await server.api('POST', `${clientApi}/createRoom`, { token, body: {} });
    const roomPath = `${clientApi}/rooms/${encodeURIComponent(String(room.body['room_id']))}`;
    const acknowledged: string[] = [];
    const send = async (number: number) => {
      const answer = await server.api('PUT', `${roomPath}/send/m.room.message/${number}`, {
        token,
        body: { msgtype: 'm.text', body: 'x'.repeat(20_000) },
      });
      if (answer.status === 200) acknowledged.push(String(answer.body['event_id']));
      return answer;
    };
    const health = async () => {
      const answer = await fetch(`${server.url}/health`);
      return [answer.status, await answer.text()] as const;
    };
    assert.equal((await send(0)).status, 200);
    assert.deepEqual(await health(), [200, 'OK']);

    fill();
    let number = 1;
    const refused = await eventually('a refused message', async () => {
      number += 1;
      const answer = await send(number);
      return answer.status === 200 ? undefined : answer;
    });
    assert.equal(refused.status, 507, refused.raw);
    assert.deepEqual(refused.body, {
      errcode: 'M_RESOURCE_LIMIT_EXCEEDED',
      error: 'The disk of this server is full: nothing can be stored at the moment',
      admin_contact: 'mailto:admin@example.org',
    });
    const accountData = await server.api(
      'PUT',
      `${clientApi}/user/${encodeURIComponent('@ann:example.org')}/account_data/a.b`,
      {
        token,
        body: { a: 'x'.repeat(60_000) },
      },
    );
    assert.equal(accountData.status, 507, accountData.raw);
    await eventually('/health', async () => (await health())[0] === 503);
    assert.deepEqual(await health(), [503, 'Cannot write: the disk is full']);
    assert.equal((await server.api('GET', `${clientApi}/sync`, { token })).status, 200, 'reading works');

    rmSync(filler());
    await eventually('/health', async () => (await health())[0] === 200);
    await eventually('an accepted message', async () => {
      number += 1;
      return (await send(number)).status === 200;
    });
    for (const eventId of acknowledged) {
      const answer = await server.api('GET', `${roomPath}/event/${encodeURIComponent(eventId)}`, { token });
      assert.equal(answer.status, 200, eventId);
    }
    await server.stop();
  });

  it('answers 507 to uploads and continues without its log while the disk is full, and stores uploads and logs again once there is free space', {
    timeout: 600_000,
  }, async () => {
    rmSync(filler(), { force: true });
    const logFile = join(disk, 'hearth.log');
    const logConfig = join(folder, 'log.yaml');
    const handlers = { file: { class: 'logging.FileHandler', filename: logFile } };
    writeFileSync(
      logConfig,
      stringify({ version: 1, handlers, root: { level: 'DEBUG', handlers: ['file'] } }),
    );
    const paths = configure(join(folder, 'elsewhere'), {
      media_store_path: join(disk, 'media'),
      log_config: logConfig,
    });
    const server = await startProcess(paths);
    running = server;
    const register = { username: 'ann', password: 'correct horse', auth: { type: 'm.login.dummy' } };
    const account = await server.api('POST', `${clientApi}/register`, { body: register });
    const token = String(account.body['access_token']);
    const room = await server.api('POST', `${clientApi}/createRoom`, { token, body: {} });
    const roomPath = `${clientApi}/rooms/${encodeURIComponent(String(room.body['room_id']))}`;
    const upload = () =>
      server.api('POST', '/_matrix/media/v3/upload', {
        token,
        body: Buffer.alloc(200_000, 'image'),
        headers: { 'content-type': 'text/plain' },
      });
    const stored = await upload();
    assert.equal(stored.status, 200, stored.raw);

    fill();
    const refused = await upload();
    assert.deepEqual(
      [refused.status, refused.body],
      [507, { errcode: 'M_UNKNOWN', error: 'The server has no disk space left to store files' }],
    );
    let sent = 0;
    await eventually('the report about the log', async () => {
      const answer = await server.api('PUT', `${roomPath}/send/m.room.message/${sent}`, {
        token,
        body: { msgtype: 'm.text', body: 'Hello' },
      });
      assert.equal(answer.status, 200, answer.raw);
      sent += 1;
      return server.errors() !== '';
    });
    assert.match(server.errors(), /^hearth: cannot write the log \S+hearth\.log: ENOSPC[^\n]+\n$/);
    assert.equal((await fetch(`${server.url}/health`)).status, 200, 'the database can be written');

    rmSync(filler());
    const secondUpload = await upload();
    assert.equal(secondUpload.status, 200, secondUpload.raw);
    for (const { body } of [stored, secondUpload]) {
      const path = `/_matrix/client/v1/media/download/${String(body['content_uri']).slice('mxc://'.length)}`;
      assert.equal((await server.api('GET', path, { token })).raw.length, 200_000);
    }
    await server.stop();
    const lines = readFileSync(logFile, 'utf8').trimEnd().split('\n');
    const logged = lines
      .map((line) => JSON.parse(line))
      .filter(({ msg, url }) => msg === 'Request' && /m\.room\.message/.test(url));
    assert.equal(
      logged.length,
      sent,
      'lines from the time of the full disk are written later, and none is incomplete',
    );
  });

  it('fails to start on a full disk, with an error that says that the disk is full', {
    timeout: 600_000,
  }, async () => {
    // A new database needs 4 KiB for its file, and then 32 KiB for the memory that its connections share.
    const databases = [
      ['empty', 'new.db', 0],
      ['created', 'created.db', 12 * kibibyte],
      ['shared', 'shared.db', 24 * kibibyte],
      ['used', 'used.db', 0],
    ] as const;
    for (const [name, file, free] of databases) {
      rmSync(filler(), { force: true });
      const directory = join(folder, name);
      const paths = configure(directory, {
        database: { name: 'sqlite3', args: { database: join(disk, file) } },
      });
      if (name === 'used') await (await startProcess(paths)).stop();
      fill(free);
      const { code, err } = await hearth(['serve', ...paths.flatMap((path) => ['-c', path])]);
      assert.equal(code, 1);
      assert.match(err, /^hearth: [^\n]*database \S+\.db[^\n]*disk is full[^\n]*\n$/);
      assert.doesNotMatch(err, /another server/);
    }
  });

  it('names the file that hearth init cannot create on a full disk, leaves no empty file, and creates a configuration when there is free space again', {
    timeout: 600_000,
  }, async () => {
    const directory = join(disk, 'initialized');
    const init = () => hearth(['init', '-n', 'example.org', '-d', directory]);
    for (const [free, name] of [
      [0, 'homeserver.yaml'],
      [4 * kibibyte, 'example.org.signing.key'],
    ] as const) {
      rmSync(filler(), { force: true });
      fill(free);
      const { code, err } = await init();
      assert.equal(code, 1);
      assert.ok(err.includes(`cannot create the file ${join(directory, name)}: the disk is full\n`), err);
      const left = existsSync(directory) ? readdirSync(directory) : [];
      assert.deepEqual(
        left.filter((file) => statSync(join(directory, file)).size === 0),
        [],
      );
    }
    rmSync(filler());
    const { code, err } = await init();
    assert.deepEqual([code, err], [0, '']);
    const checked = await hearth(['config', 'check', join(directory, 'homeserver.yaml')]);
    assert.equal(checked.code, 0, checked.err);
  });
});
