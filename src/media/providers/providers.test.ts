import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, request as proxied, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, afterEach, before, describe, it } from 'node:test';
import S3rver from 's3rver';
import { eventually } from '../../../test/clients/eventually.ts';
import { type SkippableClock, skippableClock } from '../../../test/support/clocks/skippable-clock.ts';
import { serverDatabases } from '../../../test/support/databases/databases.ts';
import { testImage } from '../../../test/support/inputs/images.ts';
import { type FederatedServer, SeveralServers } from '../../../test/support/other-servers/several-servers.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import { registerAdmin } from '../../../test/support/users/register-admin.ts';
import type { TestClient } from '../../../test/support/users/test-client.ts';
import { systemClock } from '../../kernel/clock.ts';
import { createLogger } from '../../kernel/observability/index.ts';
import { OutboundHttp } from '../../kernel/outbound/index.ts';
import { FileSystemProvider } from './file-system-provider.ts';
import { moveMedia } from './move-media.ts';
import { openProviders } from './open-providers.ts';
import { ProviderStorage, type ProviderStorageDeps } from './provider-storage.ts';
import { s3Options as s3OptionsOf } from './s3-options.ts';
import { S3Provider } from './s3-provider.ts';

/** Starts S3-compatible storage behind a proxy that can fail in several ways. */
async function startS3(directory: string) {
  const s3 = new S3rver({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory,
    configureBuckets: [{ name: 'media', configs: [] }],
  });
  const { port } = (await s3.run()) as AddressInfo;
  let answer: ((response: ServerResponse) => void) | undefined;
  const front: Server = createServer((request, response) => {
    if (answer !== undefined) {
      request.resume();
      return answer(response);
    }
    const { method, url, headers } = request;
    const onward = proxied({ port, host: '127.0.0.1', method, path: url, headers }, (found) => {
      response.writeHead(found.statusCode ?? 500, found.headers);
      found.pipe(response);
    });
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  });
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(front.address() as AddressInfo).port}`,
    /** Replaces the responses of the storage; with `undefined` requests are passed on to it. */
    answerWith(other: typeof answer) {
      answer = other;
    },
    /** Contents of all objects. */
    objects: () =>
      filesIn(directory)
        .filter((path) => path.endsWith('._S3rver_object'))
        .map((path) => readFileSync(path, 'latin1')),
    async stop() {
      front.closeAllConnections();
      await new Promise((resolve) => front.close(resolve));
      await s3.close();
    },
  };
}

const filesIn = (directory: string) =>
  existsSync(directory)
    ? readdirSync(directory, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
    : [];

const ownModule = `
import { cpSync, createReadStream, existsSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
export default ({ folder }) => ({
  async store(path, { source }) { mkdirSync(dirname(join(folder, path)), { recursive: true }); cpSync(source, join(folder, path)); },
  async open(path) { if (existsSync(join(folder, 'unreachable'))) throw new Error('unreachable'); return existsSync(join(folder, path)) ? createReadStream(join(folder, path)) : undefined; },
  async delete(path) { rmSync(join(folder, path), { force: true }); },
});
`;

for (const database of serverDatabases(import.meta.url)) {
  describe(`media storage providers on ${database}`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-providers-'));
    const [store, directory, ownFolder] = ['store', 'directory', 'own'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
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
    const local = () => filesIn(join(store, 'local'));
    const loseLocalFiles = () => rmSync(join(store, 'local'), { recursive: true });
    const atProviders = (text: string) => [
      filesIn(directory).some((path) => readFileSync(path, 'latin1') === text),
      s3.objects().includes(text),
    ];

    it('stores uploads at providers for local media [option: media_storage_providers[].module] [option: media_storage_providers[].store_local] [option: media_storage_providers[].config.directory]', async () => {
      await upload('stored twice');
      await eventually('the copy in the directory', () => atProviders('stored twice')[0]);
      assert.deepEqual(atProviders('stored twice'), [true, true]);
      assert.deepEqual(filesIn(ownFolder), []);
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
      s3.answerWith(() => undefined);
      const late = upload('too slow');
      await clock.untilTimerRuns([30_000, 31_000]);
      clock.advance(31_000);
      // The deletion of the object, which may have been stored, times out as well.
      await clock.untilTimerRuns([29_000, 30_000]);
      clock.advance(31_000);
      assert.equal(await late, '503 M_UNKNOWN');
      s3.answerWith(undefined);
      assert.equal(local().length, before);
      assert.deepEqual(filesIn(join(store, 'incoming')), []);
    });

    it('serves files that are missing on the disk from a provider, and restores them while they stream', async () => {
      const large = 'x'.repeat(1_000_000);
      const [one, two] = [await upload('from the directory'), await upload(large)];
      await eventually(
        'the copies in the directory',
        () => atProviders(large)[0] && atProviders('from the directory')[0],
      );
      loseLocalFiles();
      assert.equal((await read(one)).text, 'from the directory');
      assert.equal(local().length, 1);
      rmSync(directory, { recursive: true });
      assert.equal((await read(two)).text, large);
      assert.equal(local().length, 2);
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
      assert.deepEqual([local(), filesIn(join(store, 'incoming'))], [[], []]);
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
      await eventually('the copy', () => filesIn(ownFolder).length === 1);
      rmSync(join(store, 'remote'), { recursive: true });
      assert.equal((await read('far.test/one')).text, 'remote');
      const isAsked = () => remote.asked.filter(({ path }) => path.includes('/media/')).length;
      assert.equal(isAsked(), 1);

      // While the provider is unreachable, the copy stays.
      rmSync(join(store, 'remote'), { recursive: true });
      writeFileSync(join(ownFolder, 'unreachable'), '');
      assert.equal((await read('far.test/one')).status, 503);
      rmSync(join(ownFolder, 'unreachable'));
      assert.equal((await read('far.test/one')).text, 'remote');
      assert.equal(isAsked(), 1);

      // A quarantined copy is not downloaded again, also when its file is gone everywhere.
      await admin.ask('POST', '/_synapse/admin/v1/media/quarantine/far.test/one', {});
      for (const place of [join(store, 'remote'), join(ownFolder, 'remote')])
        rmSync(place, { recursive: true });
      assert.equal((await read('far.test/one')).status, 404);
      assert.equal(isAsked(), 1);
    });

    it('deletes media at all providers', async () => {
      const media = await upload('to be deleted');
      await eventually('the copy in the directory', () => atProviders('to be deleted')[0]);
      const answer = await admin.ask('DELETE', `/_synapse/admin/v1/media/${media}`, undefined);
      assert.equal(answer.status, 200, answer.raw);
      await eventually('the copies to be deleted', () => !atProviders('to be deleted').includes(true));
    });

    it('moves media to a provider, continues after an interruption, and compares hashes', async () => {
      const source = join(folder, 'moved');
      mkdirSync(join(source, 'local/aa/bb'), { recursive: true });
      for (const name of ['one', 'two', 'three'])
        writeFileSync(join(source, 'local/aa/bb', name), `moved ${name}`);
      const environment = { clock, http: outboundHttp(), environment: {} };
      const providers = await openProviders([s3Options()], environment);
      const seen: number[] = [];
      s3.answerWith(undefined);
      const move = () =>
        moveMedia({
          directory: source,
          providers,
          keeps: false,
          report({ files }) {
            seen.push(files);
            if (seen.length === 2) s3.answerWith((response) => response.writeHead(500).end());
          },
        });
      await assert.rejects(move(), /status 500/);
      assert.equal(filesIn(source).length, 2);
      s3.answerWith(undefined);
      const { files } = await move();
      assert.equal(files, 2);
      assert.deepEqual(filesIn(source), []);
      assert.equal(s3.objects().filter((text) => text.startsWith('moved ')).length, 3);
      await environment.http.close();
    });

    it('stores the same file several times at once', async () => {
      const target = join(folder, 'concurrent');
      const source = join(folder, 'source');
      writeFileSync(source, 'the file');
      const provider = new FileSystemProvider(target);
      const file = { source, size: 8, sha256: '' };
      await Promise.all(Array.from({ length: 20 }, () => provider.store('local/aa/bb', file)));
      assert.deepEqual(filesIn(target), [join(target, 'local/aa/bb')]);
    });

    it('reads only the beginning of an error of S3 storage', async () => {
      let [pieces, isClosed] = [0, false];
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
      new ProviderStorage({ jobs, log, clock, providers: [] } as unknown as ProviderStorageDeps);
      const payload = { provider: '1 s3', area: 'local', fileId: 'abc', size: 1, sha256: '' };
      await runs.get('media/store-in-provider')!({ payload });
      const { level, provider, fileId } = JSON.parse(lines[0]!);
      assert.deepEqual([level, provider, fileId], ['warn', '1 s3', 'abc']);
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

const outboundHttp = () =>
  new OutboundHttp({
    caches: plainCaches(systemClock),
    clock: systemClock,
    config: {
      http_proxy: null,
      https_proxy: null,
      no_proxy_hosts: [],
      ip_range_blacklist: [],
      ip_range_whitelist: [],
      federation_ip_range_blacklist: null,
      user_agent_suffix: null,
    },
  });
