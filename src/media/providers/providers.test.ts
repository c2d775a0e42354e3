import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, afterEach, before, describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { type SkippableClock, skippableClock } from '../../../test/support/clocks/skippable-clock.ts';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { filesBelow } from '../../../test/support/files/stored-files.ts';
import { testImage } from '../../../test/support/inputs/images.ts';
import { type FederatedServer, SeveralServers } from '../../../test/support/other-servers/several-servers.ts';
import { registerAdmin } from '../../../test/support/users/register-admin.ts';
import type { TestClient } from '../../../test/support/users/test-client.ts';
import { createLogger } from '../../kernel/observability/index.ts';
import { openProviders } from './open-providers.ts';
import { ProviderStorage, type ProviderStorageDeps } from './provider-storage.ts';
import { s3Options as s3OptionsOf } from './s3-options.ts';
import { S3Provider } from './s3-provider.ts';
import { outboundHttp, startS3, textsIn } from './test/s3-storage.ts';

const ownModule = `
import { cpSync, createReadStream, existsSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
export default ({ folder }) => ({
  async store(path, { source }) { mkdirSync(dirname(join(folder, path)), { recursive: true }); cpSync(source, join(folder, path)); },
  async open(path) { if (existsSync(join(folder, 'unreachable'))) throw new Error('unreachable'); return existsSync(join(folder, path)) ? createReadStream(join(folder, path)) : undefined; },
  async delete(path) { rmSync(join(folder, path), { force: true }); },
});
`;

for (const database of selectedDatabases(import.meta.url)) {
  describe(`media storage providers on ${database}`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-providers-'));
    const store = join(folder, 'store');
    const directory = join(folder, 'directory');
    const ownFolder = join(folder, 'own');
    let s3: Awaited<ReturnType<typeof startS3>>;
    let several: SeveralServers;
    let server: FederatedServer;
    let clock: SkippableClock;
    let admin: TestClient;

    const s3Options = () => ({
      module: 's3',
      store_local: true,
      store_remote: false,
      store_synchronous: true,
      config: {
        directory: null,
        bucket: 'media',
        endpoint_url: s3.url,
        access_key_id: 'S3RVER',
        secret_access_key_path: join(folder, 'secret'),
        prefix: 'of this server/',
      },
    });

    before(async () => {
      writeFileSync(join(folder, 'secret'), 'S3RVER\n');
      writeFileSync(join(folder, 'own.mjs'), ownModule);
      s3 = await startS3(join(folder, 's3'));
      clock = skippableClock();
      several = new SeveralServers(database);
      server = await several.homeserver('here.test', {
        clock,
        config: {
          media: {
            media_store_path: store,
            media_storage_providers: [
              {
                module: 'file_system',
                store_local: true,
                store_remote: false,
                store_synchronous: false,
                config: { directory },
              },
              s3Options(),
              {
                module: join(folder, 'own.mjs'),
                store_local: false,
                store_remote: true,
                store_synchronous: true,
                config: { directory: null, folder: ownFolder },
              },
            ],
          },
        },
      });
      admin = await registerAdmin(server);
    });
    afterEach(() => s3.answerWith(undefined));
    after(async () => {
      await several.stop();
      await s3.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    const upload = async (body: unknown) => {
      const headers = { 'content-type': 'image/png' };
      const answer = await server.api('POST', '/_matrix/media/v3/upload', {
        token: admin.token,
        body,
        headers,
      });
      if (answer.status !== 200) return `${answer.status} ${answer.body['errcode']}`;
      return (answer.body['content_uri'] as string).slice('mxc://'.length);
    };
    const get = async (path: string) => {
      const headers = { authorization: `Bearer ${admin.token}` };
      const response = await fetch(`${server.baseUrl}/_matrix/client/v1/media/${path}`, { headers });
      const bytes = Buffer.from(await response.arrayBuffer());
      return { status: response.status, bytes, text: bytes.toString('latin1') };
    };
    const read = (media: string) => get(`download/${media}`);
    const local = () => filesBelow(join(store, 'local'));
    const loseLocalFiles = () => rmSync(join(store, 'local'), { recursive: true });
    /** Returns whether the directory has a file with this text, and whether the S3 storage has one. */
    const atProviders = (text: string) => [textsIn(directory).includes(text), s3.objects().includes(text)];

    it('stores uploads at providers for local media [option: media_storage_providers[].module] [option: media_storage_providers[].store_local] [option: media_storage_providers[].config.directory]', async () => {
      await upload('stored twice');
      await eventually('the copy in the directory', () => atProviders('stored twice')[0]);
      assert.deepEqual(atProviders('stored twice'), [true, true]);
      assert.deepEqual(filesBelow(ownFolder), []);
    });

    it('acknowledges an upload only when a synchronous provider has stored it [option: media_storage_providers[].store_synchronous]', async () => {
      const before = local().length;
      for (const answer of [
        (response: ServerResponse) => response.writeHead(503).end('<Error><Code>SlowDown</Code></Error>'),
        (response: ServerResponse) => response.destroy(),
        (response: ServerResponse) => response.writeHead(403).end(),
      ]) {
        s3.answerWith((response) => void answer(response));
        assert.equal(await upload('refused'), '503 M_UNKNOWN');
      }
      const unanswered: unknown[] = [];
      s3.answerWith(({ req }) => void unanswered.push(req.method));
      const late = upload('too slow');
      // The deletion of the object, which may have been stored, times out as well.
      for (const method of ['PUT', 'DELETE']) {
        await eventually(`the ${method} request`, () => unanswered.includes(method));
        clock.advance(31_000);
      }
      assert.equal(await late, '503 M_UNKNOWN');
      s3.answerWith(undefined);
      assert.equal(local().length, before);
      assert.deepEqual(filesBelow(join(store, 'incoming')), []);
    });

    it('serves from a provider the files that are missing on the disk, and restores each file while it is sent', async () => {
      const large = 'x'.repeat(1_000_000);
      const [small, big] = [await upload('from the directory'), await upload(large)];
      await eventually(
        'the copies in the directory',
        () => atProviders(large)[0] && atProviders('from the directory')[0],
      );
      loseLocalFiles();
      assert.equal((await read(small)).text, 'from the directory');
      assert.equal(local().length, 1);
      rmSync(directory, { recursive: true });
      assert.equal((await read(big)).text, large);
      assert.equal(local().length, 2);
    });

    it('sends a file to the client while the provider is still sending it', async () => {
      const large = Buffer.alloc(2_000_000, 'streamed');
      const media = await upload(large);
      await eventually('the copy in the directory', () => atProviders(large.toString())[0]);
      loseLocalFiles();
      rmSync(directory, { recursive: true });
      let finish = () => {};
      s3.answerWith((response) => {
        response.writeHead(200, { 'content-length': large.length }).write(large.subarray(0, 1_500_000));
        finish = () => response.end(large.subarray(1_500_000));
      });
      const headers = { authorization: `Bearer ${admin.token}` };
      const response = await fetch(`${server.baseUrl}/_matrix/client/v1/media/download/${media}`, {
        headers,
      });
      let received = 0;
      for await (const bytes of response.body!) {
        received += bytes.length;
        if (received > 1_000_000) finish();
      }
      assert.equal(received, large.length);
    });

    it('makes thumbnails of an image that only a provider has', async () => {
      s3.answerWith(undefined);
      const image = await upload(await testImage(64, 48));
      loseLocalFiles();
      rmSync(join(store, 'thumbnails'), { recursive: true, force: true });
      await eventually(
        'the thumbnail',
        async () => (await get(`thumbnail/${image}?width=32&height=32&method=crop`)).status === 200,
      );
    });

    it('does not serve wrong bytes of a provider, and answers 503 while no provider can be reached', async () => {
      const media = await upload('the right bytes');
      await eventually('the copy in the directory', () => atProviders('the right bytes')[0]);
      loseLocalFiles();
      rmSync(directory, { recursive: true });
      s3.answerWith((response) => response.writeHead(200).end('the wrong bytes'));
      await assert.rejects(read(media));
      assert.deepEqual([local(), filesBelow(join(store, 'incoming'))], [[], []]);
      s3.answerWith((response) => response.writeHead(500).end());
      assert.equal((await read(media)).status, 503);
      s3.answerWith((response) => response.writeHead(404).end());
      assert.equal((await read(media)).status, 404);
      s3.answerWith(undefined);
      assert.equal((await read(media)).text, 'the right bytes');
    });

    it('stores copies of remote media with a storage module of the operator [option: media_storage_providers[].store_remote]', async () => {
      const remote = await several.scripted('far.test');
      remote.on('GET /_matrix/federation/v1/media/download', (_request, response) => {
        const part =
          '--b\r\nContent-Type: application/json\r\n\r\n{}\r\n--b\r\nContent-Type: text/plain\r\n\r\nremote';
        response
          .writeHead(200, { 'content-type': 'multipart/mixed; boundary=b' })
          .end(`${part}\r\n--b--\r\n`);
        return undefined;
      });
      assert.equal((await read('far.test/one')).text, 'remote');
      await eventually('the copy', () => filesBelow(ownFolder).length === 1);
      rmSync(join(store, 'remote'), { recursive: true });
      assert.equal((await read('far.test/one')).text, 'remote');
      const requestCount = () =>
        remote.receivedRequests.filter(({ path }) => path.includes('/media/')).length;
      assert.equal(requestCount(), 1);

      // While the provider is unreachable, the copy stays.
      rmSync(join(store, 'remote'), { recursive: true });
      writeFileSync(join(ownFolder, 'unreachable'), '');
      assert.equal((await read('far.test/one')).status, 503);
      rmSync(join(ownFolder, 'unreachable'));
      assert.equal((await read('far.test/one')).text, 'remote');
      assert.equal(requestCount(), 1);

      // A quarantined copy is not downloaded again, also when its file is gone everywhere.
      await admin.request('POST', '/_synapse/admin/v1/media/quarantine/far.test/one', {});
      for (const place of [join(store, 'remote'), join(ownFolder, 'remote')])
        rmSync(place, { recursive: true });
      assert.equal((await read('far.test/one')).status, 404);
      assert.equal(requestCount(), 1);
    });

    it('serves and deletes media on a second machine with the same database and an empty disk', async () => {
      const [kept, deleted] = [await upload('kept by both'), await upload('deleted by the second')];
      await eventually('the copy in the directory', () => atProviders('deleted by the second')[0]);
      const switchMachine = async (from: string, to: string) => {
        if (existsSync(from)) renameSync(from, to);
        await server.restart();
      };
      await switchMachine(store, `${store} of the first machine`);
      assert.equal((await read(kept)).text, 'kept by both');
      const answer = await admin.request('DELETE', `/_synapse/admin/v1/media/${deleted}`, undefined);
      assert.equal(answer.status, 200, answer.raw);
      await eventually(
        'the copies to be deleted',
        () => !atProviders('deleted by the second').includes(true),
      );
      rmSync(store, { recursive: true });
      await switchMachine(`${store} of the first machine`, store);
      assert.deepEqual([(await read(kept)).text, (await read(deleted)).status], ['kept by both', 404]);
    });

    it('deletes media at all providers', async () => {
      const media = await upload('to be deleted');
      await eventually('the copy in the directory', () => atProviders('to be deleted')[0]);
      const answer = await admin.request('DELETE', `/_synapse/admin/v1/media/${media}`, undefined);
      assert.equal(answer.status, 200, answer.raw);
      await eventually('the copies to be deleted', () => !atProviders('to be deleted').includes(true));
    });

    it('names providers by the places where they store files, so that jobs find a provider after the order of providers in the configuration has changed', async () => {
      const environment = { clock, http: outboundHttp(), environment: {} };
      const disk = { ...s3Options(), module: 'file_system', config: { directory } };
      const namesOf = async (list: Parameters<typeof openProviders>[0]) =>
        (await openProviders(list, environment)).map(({ name }) => name);
      const names = await namesOf([s3Options(), disk]);
      assert.deepEqual(await namesOf([disk, s3Options()]), names.toReversed());
      assert.equal(new Set(names).size, 2);
      await environment.http.close();
    });

    it('reads only the beginning of an error response of S3 storage', async () => {
      let pieces = 0;
      let isClosed = false;
      async function* body() {
        try {
          while (pieces++ < 1_000) yield Buffer.alloc(65_536, 'x');
        } finally {
          isClosed = true;
        }
      }
      const provider = new S3Provider({
        clock,
        http: {
          open: async (url) => ({ status: 206, headers: {}, url, body: Readable.from(body()) }),
        },
        options: s3OptionsOf(s3Options().config, {}),
      });
      await assert.rejects(provider.open('local/aa/bb'), /status 206/);
      await eventually('the end of the response', () => isClosed);
      assert.ok(pieces < 20, `${pieces} pieces`);
    });

    it('logs a warning for a job whose provider is not in the configuration', async () => {
      const runs = new Map<string, (job: { payload: unknown }) => Promise<unknown>>();
      const lines: string[] = [];
      const jobs = { register: (kind: string, { run }: { run: never }) => void runs.set(kind, run) };
      const log = createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } });
      // The constructor registers the jobs.
      new ProviderStorage({ jobs, log, clock, providers: [] } as unknown as ProviderStorageDeps);
      const payload = { provider: '1 s3', area: 'local', fileId: 'abc', size: 1, sha256: '' };
      await runs.get('media/store-in-provider')!({ payload });
      const { level, provider, fileId } = JSON.parse(lines[0]!);
      assert.deepEqual([level, provider, fileId], ['warn', '1 s3', 'abc']);
    });

    it('deletes from a provider a file whose row is deleted while the file is sent, also when a crash has ended the attempt', async () => {
      const stored = new Set<string>();
      let isKept = true;
      const provider = {
        async store(path: string) {
          stored.add(path);
          isKept = false;
        },
        delete: async (path: string) => void stored.delete(path),
      };
      const runs = new Map<string, (job: { payload: unknown }) => Promise<unknown>>();
      // The constructor registers the jobs.
      new ProviderStorage({
        jobs: { register: (kind: string, { run }: { run: never }) => void runs.set(kind, run) },
        disk: { sizeOf: async () => 1, pathOf: () => '' },
        database: { reader: () => rowsOf(() => (isKept ? { file_id: 'aabbc' } : undefined)) },
        clock,
        providers: [{ name: 'own', provider, storesLocal: true, storesRemote: true, isSynchronous: false }],
      } as unknown as ProviderStorageDeps);
      const payload = { provider: 'own', area: 'local', fileId: 'aabbc', size: 1, sha256: '' };
      const attempt = () => runs.get('media/store-in-provider')!({ payload });
      await attempt();
      assert.deepEqual([isKept, [...stored]], [false, []]);
      stored.add('local/aa/bb/c');
      await attempt();
      assert.deepEqual([...stored], []);
    });

    it('accepts the names of the file system module of the reference server', async () => {
      const environment = { clock, http: outboundHttp(), environment: {} };
      const config = { directory: join(folder, 'other-names') };
      for (const module of [
        'synapse.media.storage_provider.FileStorageProviderBackend',
        'synapse.rest.media.v1.storage_provider.FileStorageProviderBackend',
        'synapse.rest.media.v1.storage_provider',
      ]) {
        const [opened] = await openProviders([{ ...s3Options(), module, config }], environment);
        assert.equal(opened?.name, `file_system ${config.directory}`);
      }
    });

    it('throws an error that names the provider or option that cannot be used', async () => {
      const environment = { clock, http: outboundHttp(), environment: {} };
      const withConfig = (module: string, config: object) =>
        openProviders([{ ...s3Options(), module, config: { directory: null, ...config } }], environment);
      await assert.rejects(withConfig('s3', {}), /media_storage_providers\[0\].*config of the s3 storage/);
      await assert.rejects(
        withConfig('s3', { bucket: 'a' }),
        /access_key_id and secret_access_key are needed/,
      );
      await assert.rejects(withConfig('file_system', {}), /config\.directory is needed/);
      await assert.rejects(withConfig(join(folder, 'missing.mjs'), {}), /media_storage_providers\[0\]/);
    });
  });
}

/** Returns a reader of a database whose queries return this row. */
function rowsOf(row: () => object | undefined) {
  const query: Record<string, () => unknown> = { executeTakeFirst: async () => row() };
  for (const name of ['selectFrom', 'select', 'where']) query[name] = () => query;
  return query;
}
