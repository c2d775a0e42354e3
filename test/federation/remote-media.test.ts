import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { Agent, request } from 'undici';
import { eventually } from '../clients/eventually.ts';
import { skippableClock } from '../support/clocks/skippable-clock.ts';
import { selectedDatabases } from '../support/databases/databases.ts';
import { serveOnLoopback } from '../support/network/loopback.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import type { TestClient } from '../support/users/test-client.ts';

const endpoint = 'GET /_matrix/federation/v1/media/download';

/**
 * Returns a multipart response body with JSON metadata and the media.
 * @param headers of the part with the media
 * @param end empty for a body that breaks off in the media
 */
const multipart = (headers: string, media: string, end = '\r\n--b--\r\n') =>
  `--b\r\nContent-Type: application/json\r\n\r\n{}\r\n--b\r\n${headers}\r\n\r\n${media}${end}`;

function respond(response: ServerResponse, body: string): undefined {
  response.writeHead(200, { 'content-type': 'multipart/mixed; boundary=b' }).end(body);
}

for (const database of selectedDatabases(import.meta.url)) {
  describe(`media of other servers, on ${database}`, () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let b: FederatedServer;
    let remote: ScriptedServer;
    let alice: TestClient;
    let tess: TestClient;
    before(async () => {
      several = new SeveralServers(database);
      a = await several.homeserver('here.test', {
        config: {
          media: { max_upload_size: 5_000, prevent_media_downloads_from: ['banned.test'] },
        },
      });
      b = await several.homeserver('there.test');
      remote = await several.scripted('far.test');
      [alice, tess] = [await a.registerClient('alice'), await b.registerClient('tess')];
    });
    after(() => several.stop());

    const download = async (media: string, { server = a, token = alice.token } = {}) => {
      const url = `${server.baseUrl}/_matrix/client/v1/media/download/${media}`;
      const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
      const text = await response.text();
      const { errcode } = response.status === 200 ? {} : (JSON.parse(text) as { errcode?: string });
      return {
        status: response.status,
        text,
        headers: response.headers,
        code: `${response.status} ${errcode}`,
      };
    };
    const upload = async (body: string, filename = 'a b.txt') => {
      const headers = { 'content-type': 'text/plain' };
      const request = { token: tess.token, body, headers, query: { filename } };
      const { body: uploaded } = await b.api('POST', '/_matrix/media/v3/upload', request);
      return (uploaded['content_uri'] as string).slice('mxc://'.length);
    };
    const requestsFor = (id: string) => remote.receivedRequests.filter(({ path }) => path.endsWith(`/${id}`));

    it('fetches and stores remote media, and serves it while its server is unreachable', async () => {
      const media = await upload('from there');
      for (const isUnreachable of [false, true]) {
        if (isUnreachable) b.disconnect();
        const { status, text, headers } = await download(media);
        assert.deepEqual([status, text], [200, 'from there']);
        assert.equal(headers.get('content-disposition'), 'inline; filename="a b.txt"');
        assert.equal(headers.get('content-type'), 'text/plain');
      }
      b.reconnect();
    });

    it('answers with 404 when the remote server does not have the media', async () => {
      assert.equal((await download('there.test/unknown')).code, '404 M_NOT_FOUND');
      assert.equal((await download('far.test/unknown')).code, '404 M_NOT_FOUND');
    });

    it('serves media to other servers only for signed requests, and only media of local users', async () => {
      const unsigned = await fetch(`${a.baseUrl}/_matrix/federation/v1/media/download/x`);
      assert.equal(unsigned.status, 401);
      await unsigned.text();
      const requestMedia = (id: string) =>
        remote.request('there.test', 'GET', `/_matrix/federation/v1/media/download/${id}`);
      const { status, body } = await requestMedia('..%2F..%2Fx');
      assert.deepEqual([status, body['errcode']], [404, 'M_NOT_FOUND']);
      const fetched = await upload('to be fetched');
      await download(fetched);
      const id = fetched.split('/')[1]!;
      const elsewhere = await remote.request(
        'here.test',
        'GET',
        `/_matrix/federation/v1/media/download/${id}`,
      );
      assert.equal(elsewhere.status, 404, 'only the media of its own users');
    });

    it('downloads remote media once for concurrent requests', async () => {
      let arrived = 0;
      const count = (message: unknown) => {
        if ((message as { request: IncomingMessage }).request.url?.endsWith('/far.test/once')) arrived++;
      };
      subscribe('http.server.request.start', count);
      remote.on(`${endpoint}/once`, async (_request, response) => {
        await eventually('the other requests', () => arrived === 5);
        return respond(response, multipart('Content-Type: image/png', 'PNG'));
      });
      const responses = await Promise.all(Array.from({ length: 5 }, () => download('far.test/once')));
      unsubscribe('http.server.request.start', count);
      assert.deepEqual(new Set(responses.map(({ text }) => text)), new Set(['PNG']));
      assert.equal(requestsFor('once').length, 1);
    });

    it('lets one client address, or one remote server, have at most half of the download slots that others leave free', async () => {
      let isReleased = false;
      // Of the 64 slots, the first address gets 32, and the other address half of the rest: each sends one request more.
      const firstCount = 33;
      const otherCount = 17;
      const media = Array.from({ length: firstCount + otherCount }, (_, index) => `held${index}`);
      const otherServer = await several.scripted('other.test');
      for (const [index, id] of media.entries())
        (index < firstCount ? remote : otherServer).on(`${endpoint}/${id}`, async (_request, response) => {
          await eventually('the release of the downloads', () => isReleased);
          return respond(response, multipart('Content-Type: text/plain', 'held'));
        });
      const codes: string[] = [];
      const running = media.slice(0, firstCount).map(async (id) => {
        const { status, code } = await download(`far.test/${id}`);
        codes.push(status === 200 ? 'served' : code);
      });
      await eventually('the refusal', () => codes.length === 1);
      const otherAddress = new Agent({ localAddress: '127.0.0.2' });
      const fromOtherAddress = async (path: string) => {
        const { statusCode, body } = await request(`${a.baseUrl}/_matrix/client/v1/media/download/${path}`, {
          headers: { authorization: `Bearer ${alice.token}` },
          dispatcher: otherAddress,
        });
        await body.dump();
        return statusCode === 200 ? 'served' : String(statusCode);
      };
      assert.equal(await fromOtherAddress('far.test/held-too'), '429', 'the server has its share');
      running.push(
        ...media
          .slice(firstCount)
          .map(async (id) => void codes.push(await fromOtherAddress(`other.test/${id}`))),
      );
      await eventually('the refusal to the other address', () => codes.length === 2);
      isReleased = true;
      await Promise.all(running);
      await otherAddress.close();
      assert.deepEqual([codes[0], codes[1], codes.length], ['429 M_LIMIT_EXCEEDED', '429', media.length]);
      assert.deepEqual(new Set(codes.slice(2)), new Set(['served']));
    });

    it('fetches media from the legacy endpoint when the remote server has no other', async () => {
      const unknown = [404, { errcode: 'M_UNRECOGNIZED', error: 'what?' }] as const;
      remote.on(`${endpoint}/old`, () => unknown);
      remote.on('GET /_matrix/media/v3/download/far.test/old', (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/html' }).end('<p>');
        return undefined;
      });
      const { text, headers } = await download('far.test/old');
      assert.deepEqual([text, headers.get('content-disposition')], ['<p>', 'attachment']);
      assert.equal(requestsFor('old').at(-1)?.query.get('allow_remote'), 'false');
    });

    it('fetches media from the address in the Location header of the response, unless that address is not allowed', async () => {
      const store = await serveOnLoopback((_request, response) => {
        response.writeHead(200, { 'content-type': 'image/gif' }).end('GIF');
      });
      remote.on(`${endpoint}/moved`, (_request, response) =>
        respond(response, multipart(`Location: http://127.0.0.1:${store.port}/x`, '')),
      );
      const { text, headers } = await download('far.test/moved');
      await store.close();
      assert.deepEqual([text, headers.get('content-type')], ['GIF', 'image/gif']);
      for (const [id, location] of [
        ['inside', 'http://10.0.0.1/secret'],
        ['file', 'file:///etc/passwd'],
        ['relative', '/etc/passwd'],
      ] as const) {
        remote.on(`${endpoint}/${id}`, (_request, response) =>
          respond(response, multipart(`Location: ${location}`, '')),
        );
        assert.equal((await download(`far.test/${id}`)).code, '502 M_UNKNOWN', location);
      }
    });

    it('does not store an incomplete download, and fetches the media again', async () => {
      let body = multipart('A: b', 'half', '');
      remote.on(`${endpoint}/half`, (_request, response) => respond(response, body));
      assert.equal((await download('far.test/half')).code, '502 M_UNKNOWN');
      body = multipart('A: b', 'whole');
      assert.equal((await download('far.test/half')).text, 'whole');
    });

    it('refuses remote media above max_upload_size', async () => {
      for (const [id, size] of [
        ['large', 5_001],
        ['huge', 500_000],
      ] as const) {
        remote.on(`${endpoint}/${id}`, (_request, response) =>
          respond(response, multipart('A: b', 'x'.repeat(size))),
        );
        assert.equal((await download(`far.test/${id}`)).code, '502 M_TOO_LARGE');
      }
      remote.on(`${endpoint}/endless`, (_request, response) => {
        response.writeHead(200, { 'content-type': 'multipart/mixed; boundary=b' });
        response.write(multipart('A: b', '', ''));
        const writeMore = () => {
          while (!response.destroyed && response.write('x'.repeat(10_000)));
        };
        response.on('drain', writeMore);
        writeMore();
        return undefined;
      });
      assert.equal((await download('far.test/endless')).code, '502 M_TOO_LARGE');
    });

    it('requests media again after M_NOT_YET_UPLOADED, without backoff', async () => {
      remote.on(`${endpoint}/soon`, () => [504, { errcode: 'M_NOT_YET_UPLOADED', error: 'soon' }]);
      assert.equal((await download('far.test/soon?timeout_ms=10')).code, '504 M_NOT_YET_UPLOADED');
      assert.equal(requestsFor('soon')[0]?.query.get('timeout_ms'), '10');
      remote.on(`${endpoint}/soon`, (_request, response) => respond(response, multipart('A: b', 'now')));
      assert.equal((await download('far.test/soon')).text, 'now');
    });

    it('does not fetch remote media for unauthenticated requests', async () => {
      const media = await upload('not for all');
      await download(media);
      const unauthenticated = await fetch(`${a.baseUrl}/_matrix/media/v3/download/${media}`);
      assert.deepEqual([unauthenticated.status, requestsFor('never').length], [404, 0]);
      const never = await fetch(`${a.baseUrl}/_matrix/media/v3/download/far.test/never`);
      assert.deepEqual([never.status, requestsFor('never').length], [404, 0]);
      await Promise.all([unauthenticated.text(), never.text()]);
    });

    it('does not fetch media from excluded servers [option: prevent_media_downloads_from]', async () => {
      const banned = await several.scripted('banned.test');
      assert.equal((await download('banned.test/x')).code, '404 M_NOT_FOUND');
      assert.deepEqual(banned.receivedRequests, []);
    });
  });
}

describe('slow downloads of remote media', () => {
  it('gives up a download when fewer than 8 KiB arrive in 30 seconds', async () => {
    const several = new SeveralServers('sqlite');
    try {
      const clock = skippableClock();
      const a = await several.homeserver('here.test', { clock });
      const remote = await several.scripted('far.test');
      const { token } = await a.registerClient('alice');
      remote.on(endpoint, (_request, response) => {
        const beginning = multipart('A: b', 'x'.repeat(9_000), '');
        response.writeHead(200, { 'content-type': 'multipart/mixed; boundary=b' }).write(beginning);
        return undefined;
      });
      const url = `${a.baseUrl}/_matrix/client/v1/media/download/far.test/slow`;
      const answer = fetch(url, { headers: { authorization: `Bearer ${token}` } });
      assert.equal((await clock.skipping(30_000, answer)).status, 504);
    } finally {
      await several.stop();
    }
  });
});

describe('the rate limit of remote media downloads', () => {
  it('limits the bytes of remote media per client address [option: remote_media_download_burst_count] [option: remote_media_download_per_second]', async () => {
    const several = new SeveralServers('sqlite');
    try {
      const media = { remote_media_download_burst_count: 1_000, remote_media_download_per_second: 1 };
      const a = await several.homeserver('here.test', { config: { media } });
      const remote = await several.scripted('far.test');
      const { token } = await a.registerClient('alice');
      remote.on(endpoint, (_request, response) => respond(response, multipart('A: b', 'x'.repeat(600))));
      const status = async (id: string) => {
        const url = `${a.baseUrl}/_matrix/client/v1/media/download/far.test/${id}`;
        const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
        await response.text();
        return response.status;
      };
      assert.deepEqual([await status('one'), await status('two')], [200, 429]);
      assert.equal(await status('one'), 200, 'stored media costs nothing');
    } finally {
      await several.stop();
    }
  });
});
