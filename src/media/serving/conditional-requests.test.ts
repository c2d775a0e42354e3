import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { unhurriedClock } from '../../../test/support/clocks/unhurried-clock.ts';
import { testImage } from '../../../test/support/inputs/images.ts';
import { startTestServer, type TestServer, type TestUser } from '../../../test/support/servers/server.ts';

describe('conditional requests for media', () => {
  const store = mkdtempSync(join(tmpdir(), 'hearth-conditional-'));
  let server: TestServer;
  let anna: TestUser;
  let file: string;
  let image: string;
  before(async () => {
    server = await startTestServer({
      database: 'sqlite',
      clock: unhurriedClock,
      config: { media: { media_store_path: store } },
    });
    anna = await server.register('anna');
    file = `download/${await upload('0123456789')}`;
    image = `thumbnail/${await upload(await testImage(200, 150))}?width=32&height=32&method=crop`;
  });
  after(async () => {
    await server.stop();
    rmSync(store, { recursive: true, force: true });
  });

  const upload = async (body: unknown) => {
    const request = { token: anna.token, body, headers: { 'content-type': 'image/png' } };
    const answer = await server.api('POST', '/_matrix/media/v3/upload', request);
    return (answer.body['content_uri'] as string).slice('mxc://'.length);
  };
  const get = async (path: string, headers: Record<string, string> = {}, method = 'GET') => {
    const response = await fetch(`${server.baseUrl}/_matrix/client/v1/media/${path}`, {
      method,
      headers: { authorization: `Bearer ${anna.token}`, ...headers },
    });
    const text = Buffer.from(await response.arrayBuffer()).toString('latin1');
    return { status: response.status, text, headers: response.headers };
  };
  const openFiles = () =>
    readdirSync('/proc/self/fd').filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`).startsWith(store);
      } catch {
        return false;
      }
    });

  it('serves one range of a file with 206, answers 416 to a range outside of the file, and serves the whole file for an invalid range', async () => {
    const wholeFile = await get(file);
    const tag = wholeFile.headers.get('etag')!;
    const cases: readonly (readonly [
      headers: Record<string, string>,
      status: number,
      text: string,
      contentRange: string | null,
    ])[] = [
      [{ range: 'bytes=2-4' }, 206, '234', 'bytes 2-4/10'],
      [{ range: 'bytes=7-' }, 206, '789', 'bytes 7-9/10'],
      [{ range: 'bytes=-3' }, 206, '789', 'bytes 7-9/10'],
      [{ range: 'bytes=-99' }, 206, '0123456789', 'bytes 0-9/10'],
      [{ range: 'bytes=8-99' }, 206, '89', 'bytes 8-9/10'],
      [{ range: 'bytes=10-' }, 416, '', 'bytes */10'],
      [{ range: 'bytes=-0' }, 416, '', 'bytes */10'],
      [{ range: 'bytes=4-2' }, 200, '0123456789', null],
      [{ range: 'bytes=0-1,4-5' }, 200, '0123456789', null],
      [{ range: 'lines=0-1' }, 200, '0123456789', null],
      [{ range: 'bytes=2-4', 'if-range': tag }, 206, '234', 'bytes 2-4/10'],
      [{ range: 'bytes=2-4', 'if-range': '"other"' }, 200, '0123456789', null],
    ];
    assert.equal(wholeFile.headers.get('accept-ranges'), 'bytes');
    for (const [headers, status, text, contentRange] of cases) {
      const answer = await get(file, headers);
      const received = [answer.status, answer.text, answer.headers.get('content-range')];
      assert.deepEqual(received, [status, text, contentRange], JSON.stringify(headers));
    }
  });

  it('answers HEAD with the headers of the file and without a body', async () => {
    const { status, text, headers } = await get(file, {}, 'HEAD');
    assert.deepEqual([status, text, headers.get('content-length')], [200, '', '10']);
  });

  it('serves files larger than the buffer unchanged, and closes the file when a client disconnects', async () => {
    const body = Buffer.from(Array.from({ length: 1_000_003 }, (_, index) => index % 251));
    const large = `download/${await upload(body)}`;
    assert.ok(Buffer.from((await get(large)).text, 'latin1').equals(body));
    const path = `${server.baseUrl}/_matrix/client/v1/media/${large}`;
    for (let count = 0; count < 10; count++) {
      const leaving = new AbortController();
      const headers = { authorization: `Bearer ${anna.token}` };
      const response = await fetch(path, { headers, signal: leaving.signal });
      const reading = response.body!.getReader().read();
      leaving.abort();
      await reading.catch(() => undefined);
    }
    await eventually('the files to be closed', () => openFiles().length === 0);
    assert.ok(Buffer.from((await get(large)).text, 'latin1').equals(body));
  });

  it('answers 304 to an If-None-Match with the entity tag, without reading the file', async () => {
    const tags = new Map<string, string>();
    for (const path of [file, image]) tags.set(path, (await get(path)).headers.get('etag')!);
    assert.notEqual(tags.get(file), tags.get(image));
    rmSync(join(store, 'local'), { recursive: true });
    rmSync(join(store, 'thumbnails'), { recursive: true });
    for (const [path, tag] of tags) {
      for (const ifNoneMatch of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
        const { status, text, headers } = await get(path, { 'if-none-match': ifNoneMatch });
        assert.deepEqual([status, text, headers.get('etag')], [304, '', tag]);
      }
      assert.equal((await get(path, { 'if-none-match': '"other"' })).status, 404);
    }
  });
});
