import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { readMediaPart } from '../../src/media/remote/multipart.ts';
import { serverDatabases } from '../support/databases/databases.ts';
import {
  imageMetadata,
  noiseImage,
  pngWithClaimedSize,
  testAnimation,
  testImage,
} from '../support/inputs/images.ts';
import type { AskedAnswer, ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import type { TestClient } from '../support/users/test-client.ts';

const [downloads, small] = ['GET /_matrix/federation/v1/media/download', 'width=32&height=32&method=crop'];

/** Serves a file as another server does. */
function serve(response: ServerResponse, type: string, file: Uint8Array): undefined {
  response.writeHead(200, { 'content-type': 'multipart/mixed; boundary=b' });
  response.write('--b\r\nContent-Type: application/json\r\n\r\n{}\r\n');
  response.write(`--b\r\nContent-Type: ${type}\r\n\r\n`);
  response.write(file);
  response.end('\r\n--b--\r\n');
}

for (const database of serverDatabases(import.meta.url)) {
  describe(`thumbnails of media of other servers, on ${database}`, () => {
    let several: SeveralServers;
    let here: FederatedServer;
    let there: FederatedServer;
    let far: ScriptedServer;
    let alice: TestClient;
    let tess: TestClient;
    const store = mkdtempSync(join(tmpdir(), 'hearth-thumbnails-'));
    before(async () => {
      several = new SeveralServers(database);
      const media = {
        media_store_path: store,
        max_image_pixels: 500_000,
        max_upload_size: 1_000_000,
        prevent_media_downloads_from: ['banned.test'],
      };
      here = await several.homeserver('here.test', { config: { media } });
      there = await several.homeserver('there.test');
      far = await several.scripted('far.test');
      [alice, tess] = [await here.registerClient('alice'), await there.registerClient('tess')];
    });
    after(async () => {
      await several.stop();
      rmSync(store, { recursive: true });
    });

    const ask = async (media: string, query = small, token: string | undefined = alice.token) => {
      const url = `${here.baseUrl}/_matrix/client/v1/media/thumbnail/${media}?${query}`;
      const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
      const bytes = Buffer.from(await response.arrayBuffer());
      const errcode = response.ok ? 'fine' : (JSON.parse(bytes.toString()) as { errcode: string }).errcode;
      return { bytes, headers: response.headers, code: `${response.status} ${errcode}` };
    };
    const upload = async (person: TestClient, server: FederatedServer, body: Uint8Array) => {
      const request = { token: person.token, body, headers: { 'content-type': 'image/png' } };
      const { body: uploaded } = await server.api('POST', '/_matrix/media/v3/upload', request);
      return (uploaded['content_uri'] as string).slice('mxc://'.length);
    };
    const askedFor = (id: string) => far.asked.filter(({ path }) => path.endsWith(`/${id}`));

    it('are made of what is fetched once, also when its server is away', async () => {
      const media = await upload(tess, there, await noiseImage(400, 300));
      for (const [query, size] of [
        [small, '32x32'],
        ['width=200&height=200', '320x240'],
        ['width=900&height=900', '400x300'],
      ] as const) {
        const { bytes, headers, code } = await ask(media, query);
        assert.equal(code, '200 fine');
        const { width, height } = await imageMetadata(bytes);
        assert.equal(`${width}x${height}`, size);
        assert.equal(headers.get('content-disposition'), 'inline; filename=thumbnail.png');
        there.cut();
      }
      there.mend();
    });

    it('cost one download, however many ask for however many sizes', async () => {
      const file = await testImage(300, 200, 'jpeg');
      far.on(`${downloads}/once`, (_request, response) => serve(response, 'text/html', file));
      const queries = [small, small, 'width=64&height=64&method=crop', 'width=100&height=90'];
      const all = await Promise.all(queries.map((query) => ask('far.test/once', query)));
      assert.deepEqual(new Set(all.map(({ code }) => code)), new Set(['200 fine']));
      assert.deepEqual(all[0]!.bytes, all[1]!.bytes);
      assert.equal(askedFor('once').length, 1);
      assert.deepEqual(
        far.asked.filter(({ path }) => path.includes('thumbnail')),
        [],
      );
    });

    it('are made of what comes from the old endpoint where there is no other', async () => {
      const file = await testImage(300, 200);
      far.on(`${downloads}/old`, () => [404, { errcode: 'M_UNRECOGNIZED', error: 'what?' }]);
      far.on('GET /_matrix/media/v3/download/far.test/old', (_request, response) => {
        response.writeHead(200, { 'content-type': 'image/png' }).end(file);
        return undefined;
      });
      assert.equal((await imageMetadata((await ask('far.test/old')).bytes)).width, 32);
      assert.equal(askedFor('old').at(-1)?.query.get('allow_remote'), 'false');
    });

    it('go when the copy that they show is gone, and come back with the next', async () => {
      const file = await testImage(300, 200);
      far.on(`${downloads}/cleared`, (_request, response) => serve(response, 'image/png', file));
      const first = await ask('far.test/cleared');
      const directories = () =>
        readdirSync(join(store, 'thumbnails', 'remote'), { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile() && entry.name === '32x32-crop.png')
          .map((entry) => entry.parentPath);
      const before = directories();
      rmSync(join(store, 'remote'), { recursive: true });
      assert.deepEqual((await ask('far.test/cleared')).bytes, first.bytes);
      assert.equal(askedFor('cleared').length, 2);
      const since = directories();
      assert.equal(since.length, before.length);
      assert.notDeepEqual(new Set(since), new Set(before));
    });

    it('are refused as the media is', async () => {
      assert.equal((await ask('there.test/unknown')).code, '404 M_NOT_FOUND');
      assert.equal((await ask('banned.test/x')).code, '404 M_NOT_FOUND');
      assert.equal((await ask('a_b/x')).code, '404 M_NOT_FOUND');
      far.on(`${downloads}/soon`, () => [504, { errcode: 'M_NOT_YET_UPLOADED', error: 'soon' }]);
      assert.equal((await ask('far.test/soon', `${small}&timeout_ms=10`)).code, '504 M_NOT_YET_UPLOADED');
      assert.equal(askedFor('soon')[0]?.query.get('timeout_ms'), '10');
      far.on(`${downloads}/bad`, () => ({}));
      assert.equal((await ask('far.test/bad')).code, '502 M_UNKNOWN');
      far.on(`${downloads}/large`, (_request, response) =>
        serve(response, 'image/png', Buffer.alloc(1_000_001)),
      );
      assert.equal((await ask('far.test/large')).code, '502 M_TOO_LARGE');
    });

    it('are not of what is no picture, or has too many pixels', async () => {
      for (const [id, file, code] of [
        ['text', Buffer.from('hello'), '400 M_UNKNOWN'],
        ['half', (await noiseImage(300, 300)).subarray(0, 10_000), '400 M_UNKNOWN'],
        ['bomb', pngWithClaimedSize(20_000, 20_000, 20_000), '502 M_TOO_LARGE'],
      ] as const) {
        far.on(`${downloads}/${id}`, (_request, response) => serve(response, 'image/png', file));
        for (let times = 0; times < 2; times++) assert.equal((await ask(`far.test/${id}`)).code, code, id);
        assert.equal(askedFor(id).length, 1);
      }
    });

    it('are not fetched for those who do not say who they are', async () => {
      const open = (media: string) =>
        fetch(`${here.baseUrl}/_matrix/media/v3/thumbnail/${media}?${small}&allow_remote=true`);
      for (const media of ['far.test/once', 'far.test/never']) {
        const response = await open(media);
        await response.text();
        assert.equal(response.status, 404);
      }
      assert.deepEqual(askedFor('never'), []);
    });

    describe('for other servers', () => {
      /** What is in an answer of two parts. */
      const read = async ({ status, type, bytes, body }: AskedAnswer) => {
        if (status !== 200) return { code: `${status} ${body['errcode']}` };
        const parts = (async function* () {
          yield bytes;
        })();
        const { headers, content } = await readMediaPart(type, parts);
        const all: Uint8Array[] = [];
        for await (const piece of content) all.push(piece);
        return { headers: Object.fromEntries(headers), seen: await imageMetadata(Buffer.concat(all)) };
      };
      const asServer = async (id: string, query = small) =>
        read(await far.ask('here.test', 'GET', `/_matrix/federation/v1/media/thumbnail/${id}?${query}`));

      it('are answers of two parts', async () => {
        const [, id] = (await upload(alice, here, await testImage(400, 300))).split('/');
        const { headers, seen } = await asServer(id!, 'width=200&height=100');
        assert.deepEqual(headers, {
          'content-type': 'image/png',
          'content-disposition': 'inline; filename=thumbnail.png',
        });
        assert.deepEqual([seen?.width, seen?.height], [320, 240]);
        const [, moving] = (await upload(alice, here, await testAnimation(400, 100, 'gif'))).split('/');
        const frames = async (more: string) => (await asServer(moving!, small + more)).seen?.frames;
        assert.deepEqual([await frames(''), await frames('&animated=true')], [1, 3]);
      });

      it('are of this server only, and for those who sign', async () => {
        const unsigned = await fetch(`${here.baseUrl}/_matrix/federation/v1/media/thumbnail/x?${small}`);
        await unsigned.text();
        assert.equal(unsigned.status, 401);
        assert.equal((await asServer('..%2F..%2Fx')).code, '404 M_NOT_FOUND');
        assert.equal(
          (await asServer('once')).code,
          '404 M_NOT_FOUND',
          'what was fetched belongs to its server',
        );
      });

      it('are refused with a reason', async () => {
        const [, id] = (await upload(alice, here, Buffer.from('hello'))).split('/');
        assert.equal((await asServer(id!)).code, '400 M_UNKNOWN');
        assert.equal((await asServer(id!, 'width=1')).code, '400 M_MISSING_PARAM');
        assert.equal((await asServer(id!, 'width=-1&height=1')).code, '400 M_INVALID_PARAM');
        const [, large] = (await upload(alice, here, pngWithClaimedSize(10_000, 10_000))).split('/');
        assert.equal((await asServer(large!)).code, '413 M_TOO_LARGE');
        const { body } = await here.api('POST', '/_matrix/media/v1/create', { token: alice.token });
        const [, pending] = (body['content_uri'] as string).slice('mxc://'.length).split('/');
        assert.equal((await asServer(pending!, `${small}&timeout_ms=0`)).code, '504 M_NOT_YET_UPLOADED');
      });
    });
  });
}

describe('what thumbnails of other servers cost', () => {
  it('is what their media costs [option: remote_media_download_burst_count]', async () => {
    const several = new SeveralServers('sqlite');
    try {
      const file = await noiseImage(100, 100);
      const media = {
        remote_media_download_burst_count: Math.floor(file.length * 1.5),
        remote_media_download_per_second: 1,
      };
      const here = await several.homeserver('here.test', { config: { media } });
      const far = await several.scripted('far.test');
      const { token } = await here.registerClient('alice');
      far.on(downloads, (_request, response) => serve(response, 'image/png', file));
      const status = async (id: string) => {
        const url = `${here.baseUrl}/_matrix/client/v1/media/thumbnail/far.test/${id}?${small}`;
        const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
        await response.arrayBuffer();
        return response.status;
      };
      assert.deepEqual([await status('one'), await status('two')], [200, 429]);
      assert.equal(await status('one'), 200, 'what is here already costs nothing');
    } finally {
      await several.stop();
    }
  });
});
