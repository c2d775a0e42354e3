import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { filesBelow } from '../../../test/support/files/stored-files.ts';
import { systemClock } from '../../kernel/clock.ts';
import { moveMedia } from './move-media.ts';
import { openProviders } from './open-providers.ts';
import { outboundHttp, startS3 } from './test/s3-storage.ts';

describe('moveMedia', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-move-'));
  let s3: Awaited<ReturnType<typeof startS3>>;
  const s3Options = () => ({
    module: 's3',
    store_local: true,
    store_remote: false,
    store_synchronous: false,
    config: {
      directory: null,
      bucket: 'media',
      endpoint_url: s3.url,
      access_key_id: 'S3RVER',
      secret_access_key: 'S3RVER',
    },
  });
  before(async () => {
    s3 = await startS3(join(folder, 's3'));
  });
  after(async () => {
    await s3.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('moves media to a provider, and continues after an interruption', async () => {
    const source = join(folder, 'moved');
    mkdirSync(join(source, 'local/aa/bb'), { recursive: true });
    for (const name of ['one', 'two', 'three'])
      writeFileSync(join(source, 'local/aa/bb', name), `moved ${name}`);
    const environment = { clock: systemClock, http: outboundHttp(), environment: {} };
    const providers = await openProviders([s3Options()], environment);
    const reportedFiles: number[] = [];
    s3.answerWith(undefined);
    const move = () =>
      moveMedia({
        directory: source,
        providers,
        keeps: false,
        report({ files }) {
          reportedFiles.push(files);
          if (reportedFiles.length === 2) s3.answerWith((response) => response.writeHead(500).end());
        },
      });
    await assert.rejects(move(), /status 500/);
    assert.equal(filesBelow(source).length, 2);
    s3.answerWith(undefined);
    const { files } = await move();
    assert.equal(files, 2);
    assert.deepEqual(filesBelow(source), []);
    assert.equal(s3.objects().filter((text) => text.startsWith('moved ')).length, 3);
    await environment.http.close();
  });

  it('does not move files that the server is storing or deleting, and deletes from the provider a file that is deleted during its move', async () => {
    const source = join(folder, 'in use');
    mkdirSync(join(source, 'local/aa/bb'), { recursive: true });
    mkdirSync(join(source, 'incoming'));
    for (const name of ['deleted', 'marked', 'new']) writeFileSync(join(source, 'local/aa/bb', name), name);
    writeFileSync(join(source, 'incoming/local.aabbmarked.placed'), '');
    writeFileSync(join(source, 'incoming/local.aabbnew.part'), '');
    const stored = new Map<string, string>();
    const provider = {
      async store(path: string, file: { source: string }) {
        stored.set(path, readFileSync(file.source, 'utf8'));
        rmSync(file.source);
      },
      open: async (path: string) =>
        stored.has(path) ? Readable.from([Buffer.from(stored.get(path)!)]) : undefined,
      delete: async (path: string) => void stored.delete(path),
    };
    const openedProvider = {
      name: 'own',
      provider,
      storesLocal: true,
      storesRemote: false,
      isSynchronous: false,
    };
    await moveMedia({
      directory: source,
      providers: [openedProvider],
      keeps: false,
      report: () => undefined,
    });
    assert.deepEqual([...stored], []);
    const remainingFiles = ['marked', 'new'].map((name) => join(source, 'local/aa/bb', name));
    assert.deepEqual(filesBelow(join(source, 'local')).sort(), remainingFiles);
  });

  it('rejects when a provider returns other bytes than it was sent, and keeps the file', async () => {
    const source = join(folder, 'damaged');
    mkdirSync(join(source, 'local/aa/bb'), { recursive: true });
    const file = join(source, 'local/aa/bb/one');
    writeFileSync(file, 'content');
    const provider = {
      store: async () => undefined,
      open: async () => Readable.from([Buffer.from('damaged')]),
      delete: async () => undefined,
    };
    const settings = { storesLocal: true, storesRemote: false, isSynchronous: false };
    const moving = moveMedia({
      directory: source,
      providers: [{ name: 'own', provider, ...settings }],
      keeps: false,
      report: () => undefined,
    });
    await assert.rejects(moving, /"own" did not store local\/aa\/bb\/one unchanged/);
    assert.equal(readFileSync(file, 'utf8'), 'content');
  });
});
