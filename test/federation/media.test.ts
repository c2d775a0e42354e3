import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { serverDatabases } from '../support/databases/databases.ts';
import { serveOnLoopback } from '../support/network/loopback.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import type { TestClient } from '../support/users/test-client.ts';

const endpoint = 'GET /_matrix/federation/v1/media/download';

/** An answer of two parts. */
const parts = (headers: string, media: string, end = '\r\n--b--\r\n') =>
  `--b\r\nContent-Type: application/json\r\n\r\n{}\r\n--b\r\n${headers}\r\n\r\n${media}${end}`;

function answer(response: ServerResponse, body: string): undefined {
  response.writeHead(200, { 'content-type': 'multipart/mixed; boundary=b' }).end(body);
}

for (const database of serverDatabases(import.meta.url)) {
  describe(`media of other servers, on ${database}`, () => {
    let several: SeveralServers;
    let here: FederatedServer;
    let there: FederatedServer;
    let far: ScriptedServer;
    let alice: TestClient;
    let tess: TestClient;
    before(async () => {
      several = new SeveralServers(database);
      here = await several.homeserver('here.test', {
        config: {
          media: { max_upload_size: 5_000, prevent_media_downloads_from: ['banned.test'] },
        },
      });
      there = await several.homeserver('there.test');
      far = await several.scripted('far.test');
      [alice, tess] = [await here.registerClient('alice'), await there.registerClient('tess')];
    });
    after(() => several.stop());

    const download = async (media: string, { server = here, token = alice.token } = {}) => {
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
      const { body: uploaded } = await there.api('POST', '/_matrix/media/v3/upload', request);
      return (uploaded['content_uri'] as string).slice('mxc://'.length);
    };
    const askedFor = (id: string) => far.asked.filter(({ path }) => path.endsWith(`/${id}`));

    it('is fetched, kept, and served when its server is away', async () => {
      const media = await upload('from there');
      for (const isAway of [false, true]) {
        if (isAway) there.cut();
        const { status, text, headers } = await download(media);
        assert.deepEqual([status, text], [200, 'from there']);
        assert.equal(headers.get('content-disposition'), 'inline; filename="a b.txt"');
        assert.equal(headers.get('content-type'), 'text/plain');
      }
      there.mend();
    });

    it('is unknown when its server says so', async () => {
      assert.equal((await download('there.test/unknown')).code, '404 M_NOT_FOUND');
      assert.equal((await download('far.test/unknown')).code, '404 M_NOT_FOUND');
    });

    it('is given to other servers that sign, of this server only', async () => {
      const unsigned = await fetch(`${here.baseUrl}/_matrix/federation/v1/media/download/x`);
      assert.equal(unsigned.status, 401);
      await unsigned.text();
      const asked = (id: string) =>
        far.ask('there.test', 'GET', `/_matrix/federation/v1/media/download/${id}`);
      const { status, body } = await asked('..%2F..%2Fx');
      assert.deepEqual([status, body['errcode']], [404, 'M_NOT_FOUND']);
      const fetched = await upload('to be fetched');
      await download(fetched);
      const id = fetched.split('/')[1]!;
      const elsewhere = await far.ask('here.test', 'GET', `/_matrix/federation/v1/media/download/${id}`);
      assert.equal(elsewhere.status, 404, 'what was fetched belongs to its server');
    });

    it('is downloaded once for all who ask at the same time', async () => {
      far.on(`${endpoint}/once`, async (_request, response) => {
        await new Promise((resolve) => setTimeout(resolve, 50));
        return answer(response, parts('Content-Type: image/png', 'PNG'));
      });
      const all = await Promise.all(Array.from({ length: 5 }, () => download('far.test/once')));
      assert.deepEqual(new Set(all.map(({ text }) => text)), new Set(['PNG']));
      assert.equal(askedFor('once').length, 1);
    });

    it('is fetched from the old endpoint where there is no other', async () => {
      const unknown = [404, { errcode: 'M_UNRECOGNIZED', error: 'what?' }] as const;
      far.on(`${endpoint}/old`, () => unknown);
      far.on('GET /_matrix/media/v3/download/far.test/old', (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/html' }).end('<p>');
        return undefined;
      });
      const { text, headers } = await download('far.test/old');
      assert.deepEqual([text, headers.get('content-disposition')], ['<p>', 'attachment']);
      assert.equal(askedFor('old').at(-1)?.query.get('allow_remote'), 'false');
    });

    it('is fetched from where its server says it is, if that is allowed', async () => {
      const store = await serveOnLoopback((_request, response) => {
        response.writeHead(200, { 'content-type': 'image/gif' }).end('GIF');
      });
      far.on(`${endpoint}/moved`, (_request, response) =>
        answer(response, parts(`Location: http://127.0.0.1:${store.port}/x`, '')),
      );
      const { text, headers } = await download('far.test/moved');
      await store.close();
      assert.deepEqual([text, headers.get('content-type')], ['GIF', 'image/gif']);
      for (const [id, location] of [
        ['inside', 'http://10.0.0.1/secret'],
        ['file', 'file:///etc/passwd'],
        ['relative', '/etc/passwd'],
      ] as const) {
        far.on(`${endpoint}/${id}`, (_request, response) =>
          answer(response, parts(`Location: ${location}`, '')),
        );
        assert.equal((await download(`far.test/${id}`)).code, '502 M_UNKNOWN', location);
      }
    });

    it('is not kept unless it has come whole, and not refused for ever', async () => {
      let body = parts('A: b', 'half', '');
      far.on(`${endpoint}/half`, (_request, response) => answer(response, body));
      assert.equal((await download('far.test/half')).code, '502 M_UNKNOWN');
      body = parts('A: b', 'whole');
      assert.equal((await download('far.test/half')).text, 'whole');
    });

    it('has a largest size', async () => {
      for (const [id, size] of [
        ['large', 5_001],
        ['huge', 500_000],
      ] as const) {
        far.on(`${endpoint}/${id}`, (_request, response) =>
          answer(response, parts('A: b', 'x'.repeat(size))),
        );
        assert.equal((await download(`far.test/${id}`)).code, '502 M_TOO_LARGE');
      }
      far.on(`${endpoint}/endless`, (_request, response) => {
        response.writeHead(200, { 'content-type': 'multipart/mixed; boundary=b' });
        response.write(parts('A: b', '', ''));
        const more = () => {
          while (!response.destroyed && response.write('x'.repeat(10_000)));
        };
        response.on('drain', more);
        more();
        return undefined;
      });
      assert.equal((await download('far.test/endless')).code, '502 M_TOO_LARGE');
    });

    it('that is still to come is asked for again, and its server is not left alone', async () => {
      far.on(`${endpoint}/soon`, () => [504, { errcode: 'M_NOT_YET_UPLOADED', error: 'soon' }]);
      assert.equal((await download('far.test/soon?timeout_ms=10')).code, '504 M_NOT_YET_UPLOADED');
      assert.equal(askedFor('soon')[0]?.query.get('timeout_ms'), '10');
      far.on(`${endpoint}/soon`, (_request, response) => answer(response, parts('A: b', 'now')));
      assert.equal((await download('far.test/soon')).text, 'now');
    });

    it('is not given to those who do not say who they are', async () => {
      const media = await upload('not for all');
      await download(media);
      const open = await fetch(`${here.baseUrl}/_matrix/media/v3/download/${media}`);
      assert.deepEqual([open.status, askedFor('never').length], [404, 0]);
      const never = await fetch(`${here.baseUrl}/_matrix/media/v3/download/far.test/never`);
      assert.deepEqual([never.status, askedFor('never').length], [404, 0]);
      await Promise.all([open.text(), never.text()]);
    });

    it('of some servers is not to be had [option: prevent_media_downloads_from]', async () => {
      const banned = await several.scripted('banned.test');
      assert.equal((await download('banned.test/x')).code, '404 M_NOT_FOUND');
      assert.deepEqual(banned.asked, []);
    });
  });
}

describe('how much of it clients may fetch', () => {
  it('is limited for each address [option: remote_media_download_burst_count] [option: remote_media_download_per_second]', async () => {
    const several = new SeveralServers('sqlite');
    try {
      const media = { remote_media_download_burst_count: 1_000, remote_media_download_per_second: 1 };
      const here = await several.homeserver('here.test', { config: { media } });
      const far = await several.scripted('far.test');
      const { token } = await here.registerClient('alice');
      far.on(endpoint, (_request, response) => answer(response, parts('A: b', 'x'.repeat(600))));
      const status = async (id: string) => {
        const url = `${here.baseUrl}/_matrix/client/v1/media/download/far.test/${id}`;
        const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
        await response.text();
        return response.status;
      };
      assert.deepEqual([await status('one'), await status('two')], [200, 429]);
      assert.equal(await status('one'), 200, 'what is here already costs nothing');
    } finally {
      await several.stop();
    }
  });
});
