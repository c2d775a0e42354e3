import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { readMediaPart } from '../../src/media/remote/multipart.ts';
import { unhurriedClock } from '../support/clocks/unhurried-clock.ts';
import { selectedDatabases } from '../support/databases/databases.ts';
import { filesBelow } from '../support/files/stored-files.ts';
import {
  imageMetadata,
  noiseImage,
  pngWithClaimedSize,
  testAnimation,
  testImage,
} from '../support/inputs/images.ts';
import type { ReceivedAnswer, ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import type { TestClient } from '../support/users/test-client.ts';

const downloads = 'GET /_matrix/federation/v1/media/download';
const small = 'width=32&height=32&method=crop';

/** Serves a file in a multipart response, as a homeserver does. */
function serve(response: ServerResponse, type: string, file: Uint8Array): undefined {
  response.writeHead(200, { 'content-type': 'multipart/mixed; boundary=b' });
  response.write('--b\r\nContent-Type: application/json\r\n\r\n{}\r\n');
  response.write(`--b\r\nContent-Type: ${type}\r\n\r\n`);
  response.write(file);
  response.end('\r\n--b--\r\n');
}

for (const database of selectedDatabases(import.meta.url)) {
  describe(`thumbnails of remote media, on ${database}`, () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let b: FederatedServer;
    let remote: ScriptedServer;
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
      a = await several.homeserver('here.test', { clock: unhurriedClock, config: { media } });
      b = await several.homeserver('there.test', { clock: unhurriedClock });
      remote = await several.scripted('far.test');
      [alice, tess] = [await a.registerClient('alice'), await b.registerClient('tess')];
    });
    after(async () => {
      await several.stop();
      rmSync(store, { recursive: true });
    });

    const sendRequest = async (media: string, query = small, token: string | undefined = alice.token) => {
      const url = `${a.baseUrl}/_matrix/client/v1/media/thumbnail/${media}?${query}`;
      const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
      const bytes = Buffer.from(await response.arrayBuffer());
      const errcode = response.ok ? 'fine' : (JSON.parse(bytes.toString()) as { errcode: string }).errcode;
      return { bytes, headers: response.headers, code: `${response.status} ${errcode}` };
    };
    const upload = async (user: TestClient, server: FederatedServer, body: Uint8Array) => {
      const request = { token: user.token, body, headers: { 'content-type': 'image/png' } };
      const { body: uploaded } = await server.api('POST', '/_matrix/media/v3/upload', request);
      return (uploaded['content_uri'] as string).slice('mxc://'.length);
    };
    const requestsFor = (id: string) => remote.receivedRequests.filter(({ path }) => path.endsWith(`/${id}`));

    it('makes thumbnails from one download, also while the remote server is unreachable', async () => {
      const media = await upload(tess, b, await noiseImage(400, 300));
      for (const [query, size] of [
        [small, '32x32'],
        ['width=200&height=200', '320x240'],
        ['width=900&height=900', '400x300'],
      ] as const) {
        const { bytes, headers, code } = await sendRequest(media, query);
        assert.equal(code, '200 fine');
        const { width, height } = await imageMetadata(bytes);
        assert.equal(`${width}x${height}`, size);
        assert.equal(headers.get('content-disposition'), 'inline; filename=thumbnail.png');
        b.disconnect();
      }
      b.reconnect();
    });

    it('downloads media once for concurrent thumbnail requests of several sizes', async () => {
      const file = await testImage(300, 200, 'jpeg');
      remote.on(`${downloads}/once`, (_request, response) => serve(response, 'text/html', file));
      const queries = [small, small, 'width=64&height=64&method=crop', 'width=100&height=90'];
      const responses = await Promise.all(queries.map((query) => sendRequest('far.test/once', query)));
      assert.deepEqual(new Set(responses.map(({ code }) => code)), new Set(['200 fine']));
      assert.deepEqual(responses[0]!.bytes, responses[1]!.bytes);
      assert.equal(requestsFor('once').length, 1);
      assert.deepEqual(
        remote.receivedRequests.filter(({ path }) => path.includes('thumbnail')),
        [],
      );
    });

    it('makes a thumbnail of media from the legacy endpoint when the remote server has no other', async () => {
      const file = await testImage(300, 200);
      remote.on(`${downloads}/old`, () => [404, { errcode: 'M_UNRECOGNIZED', error: 'what?' }]);
      remote.on('GET /_matrix/media/v3/download/far.test/old', (_request, response) => {
        response.writeHead(200, { 'content-type': 'image/png' }).end(file);
        return undefined;
      });
      assert.equal((await imageMetadata((await sendRequest('far.test/old')).bytes)).width, 32);
      assert.equal(requestsFor('old').at(-1)?.query.get('allow_remote'), 'false');
    });

    it('makes a thumbnail again after the stored media was deleted', async () => {
      const file = await testImage(300, 200);
      remote.on(`${downloads}/cleared`, (_request, response) => serve(response, 'image/png', file));
      const first = await sendRequest('far.test/cleared');
      const directories = () =>
        filesBelow(join(store, 'thumbnails', 'remote'))
          .filter((path) => basename(path) === '32x32-crop.png')
          .map((path) => dirname(path));
      const directoriesBefore = directories();
      rmSync(join(store, 'remote'), { recursive: true });
      assert.deepEqual((await sendRequest('far.test/cleared')).bytes, first.bytes);
      assert.equal(requestsFor('cleared').length, 2);
      const after = directories();
      assert.equal(after.length, directoriesBefore.length);
      assert.notDeepEqual(new Set(after), new Set(directoriesBefore));
    });

    it('fails a thumbnail request with the error of the media download', async () => {
      assert.equal((await sendRequest('there.test/unknown')).code, '404 M_NOT_FOUND');
      assert.equal((await sendRequest('banned.test/x')).code, '404 M_NOT_FOUND');
      assert.equal((await sendRequest('a_b/x')).code, '404 M_NOT_FOUND');
      remote.on(`${downloads}/soon`, () => [504, { errcode: 'M_NOT_YET_UPLOADED', error: 'soon' }]);
      assert.equal(
        (await sendRequest('far.test/soon', `${small}&timeout_ms=10`)).code,
        '504 M_NOT_YET_UPLOADED',
      );
      assert.equal(requestsFor('soon')[0]?.query.get('timeout_ms'), '10');
      remote.on(`${downloads}/bad`, () => ({}));
      assert.equal((await sendRequest('far.test/bad')).code, '502 M_UNKNOWN');
      remote.on(`${downloads}/large`, (_request, response) =>
        serve(response, 'image/png', Buffer.alloc(1_000_001)),
      );
      assert.equal((await sendRequest('far.test/large')).code, '502 M_TOO_LARGE');
    });

    it('fails thumbnail requests for files that are not images, are cut off or have too many pixels', async () => {
      for (const [id, file, code] of [
        ['text', Buffer.from('hello'), '400 M_UNKNOWN'],
        ['half', (await noiseImage(300, 300)).subarray(0, 10_000), '400 M_UNKNOWN'],
        ['bomb', pngWithClaimedSize(20_000, 20_000, 20_000), '502 M_TOO_LARGE'],
      ] as const) {
        remote.on(`${downloads}/${id}`, (_request, response) => serve(response, 'image/png', file));
        for (let times = 0; times < 2; times++)
          assert.equal((await sendRequest(`far.test/${id}`)).code, code, id);
        assert.equal(requestsFor(id).length, 1);
      }
    });

    it('does not fetch thumbnails for unauthenticated requests', async () => {
      const unauthenticated = (media: string) =>
        fetch(`${a.baseUrl}/_matrix/media/v3/thumbnail/${media}?${small}&allow_remote=true`);
      for (const media of ['far.test/once', 'far.test/never']) {
        const response = await unauthenticated(media);
        await response.text();
        assert.equal(response.status, 404);
      }
      assert.deepEqual(requestsFor('never'), []);
    });

    describe('GET /_matrix/federation/v1/media/thumbnail', () => {
      /** Parses a multipart response. */
      const read = async ({ status, type, bytes, body }: ReceivedAnswer) => {
        if (status !== 200) return { code: `${status} ${body['errcode']}` };
        const parts = (async function* () {
          yield bytes;
        })();
        const { headers, content } = await readMediaPart(type, parts);
        const pieces: Uint8Array[] = [];
        for await (const piece of content) pieces.push(piece);
        return {
          headers: Object.fromEntries(headers),
          metadata: await imageMetadata(Buffer.concat(pieces)),
        };
      };
      const requestAsServer = async (id: string, query = small) =>
        read(
          await remote.request('here.test', 'GET', `/_matrix/federation/v1/media/thumbnail/${id}?${query}`),
        );

      it('returns a thumbnail in a multipart response, animated on request', async () => {
        const [, id] = (await upload(alice, a, await testImage(400, 300))).split('/');
        const { headers, metadata } = await requestAsServer(id!, 'width=200&height=100');
        assert.deepEqual(headers, {
          'content-type': 'image/png',
          'content-disposition': 'inline; filename=thumbnail.png',
        });
        assert.deepEqual([metadata?.width, metadata?.height], [320, 240]);
        const [, animation] = (await upload(alice, a, await testAnimation(400, 100, 'gif'))).split('/');
        const frames = async (more: string) =>
          (await requestAsServer(animation!, small + more)).metadata?.frames;
        assert.deepEqual([await frames(''), await frames('&animated=true')], [1, 3]);
      });

      it('requires a signature, and serves only media of this server', async () => {
        const unsigned = await fetch(`${a.baseUrl}/_matrix/federation/v1/media/thumbnail/x?${small}`);
        await unsigned.text();
        assert.equal(unsigned.status, 401);
        assert.equal((await requestAsServer('..%2F..%2Fx')).code, '404 M_NOT_FOUND');
        assert.equal(
          (await requestAsServer('once')).code,
          '404 M_NOT_FOUND',
          'a file that this server has downloaded from far.test',
        );
      });

      it('fails with an errcode for invalid parameters and unusable media', async () => {
        const [, id] = (await upload(alice, a, Buffer.from('hello'))).split('/');
        assert.equal((await requestAsServer(id!)).code, '400 M_UNKNOWN');
        assert.equal((await requestAsServer(id!, 'width=1')).code, '400 M_MISSING_PARAM');
        assert.equal((await requestAsServer(id!, 'width=-1&height=1')).code, '400 M_INVALID_PARAM');
        const [, large] = (await upload(alice, a, pngWithClaimedSize(10_000, 10_000))).split('/');
        assert.equal((await requestAsServer(large!)).code, '413 M_TOO_LARGE');
        const { body } = await a.api('POST', '/_matrix/media/v1/create', { token: alice.token });
        const [, pending] = (body['content_uri'] as string).slice('mxc://'.length).split('/');
        assert.equal(
          (await requestAsServer(pending!, `${small}&timeout_ms=0`)).code,
          '504 M_NOT_YET_UPLOADED',
        );
      });
    });
  });
}

describe('the rate limit of thumbnails of remote media', () => {
  it('counts the bytes of the downloaded media [option: remote_media_download_burst_count]', async () => {
    const several = new SeveralServers('sqlite');
    try {
      const file = await noiseImage(100, 100);
      const media = {
        remote_media_download_burst_count: Math.floor(file.length * 1.5),
        remote_media_download_per_second: 1,
      };
      const a = await several.homeserver('here.test', { clock: unhurriedClock, config: { media } });
      const remote = await several.scripted('far.test');
      const { token } = await a.registerClient('alice');
      remote.on(downloads, (_request, response) => serve(response, 'image/png', file));
      const status = async (id: string) => {
        const url = `${a.baseUrl}/_matrix/client/v1/media/thumbnail/far.test/${id}?${small}`;
        const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
        await response.arrayBuffer();
        return response.status;
      };
      assert.deepEqual([await status('one'), await status('two')], [200, 429]);
      assert.equal(await status('one'), 200, 'stored media costs nothing');
    } finally {
      await several.stop();
    }
  });
});
