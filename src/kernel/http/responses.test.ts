import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import {
  bearer,
  createKernelServer,
  kernelServerForTests,
  logLines,
  longPolls,
} from '../../../test/support/servers/kernel-server.ts';
import { FilePart, OpenFile, Reply, route } from './index.ts';

const { base, call, fails } = kernelServerForTests();

describe('responses', () => {
  it('sends streams and redirects', async () => {
    const { raw, headers } = await call('GET', '/_matrix/media/v3/download/cat');
    assert.deepEqual([raw, headers.get('content-type')], ['cat!', 'text/plain']);
    const moved = await call('GET', '/_matrix/client/v3/moved');
    assert.deepEqual([moved.status, moved.headers.get('location')], [302, 'https://example.org/']);
  });

  it('compresses a response with gzip if the listener allows it and the client accepts it', async () => {
    const { headers, body } = await call('GET', '/_matrix/client/v3/large');
    assert.equal(headers.get('content-encoding'), 'gzip');
    assert.equal(String(body['text']).length, 5000);
    const plain = await call('GET', '/_matrix/client/v3/large', {
      headers: { 'accept-encoding': 'br, gzip;q=0' },
    });
    assert.equal(plain.headers.get('content-encoding'), null);
  });

  it('compresses a stream of JSON with gzip if the client accepts it, and no stream of another type', async () => {
    const streamed = await call('GET', '/_matrix/client/v3/streamed/json');
    assert.equal(streamed.headers.get('content-encoding'), 'gzip');
    assert.equal(streamed.headers.get('vary'), 'Accept-Encoding');
    assert.equal(String(streamed.body['text']).length, 50_000);
    const plain = await call('GET', '/_matrix/client/v3/streamed/json', {
      headers: { 'accept-encoding': 'br' },
    });
    assert.equal(plain.headers.get('content-encoding'), null);
    assert.equal(plain.raw, streamed.raw);
    const other = await call('GET', '/_matrix/client/v3/streamed/octet-stream');
    assert.equal(other.headers.get('content-encoding'), null);
  });

  it('exposes the Retry-After header of a 429 response to scripts of other origins', async () => {
    const { headers } = await fails(429, 'M_LIMIT_EXCEEDED', 'GET', '/_matrix/client/v3/later');
    assert.equal(headers.get('retry-after'), '2');
    assert.equal(headers.get('access-control-expose-headers'), 'Retry-After');
  });

  it('answers an unexpected error with a request id and no details, and logs the error', async () => {
    logLines.length = 0;
    const answer = await fails(500, 'M_UNKNOWN', 'GET', '/_matrix/client/v3/broken', {
      headers: { 'x-request-id': 'abc-1' },
    });
    assert.match(String(answer.body['error']), /abc-1/);
    assert.doesNotMatch(answer.raw, /swordfish/);
    const logged = logLines.map((line) => JSON.parse(line)).find(({ level }) => level === 'error');
    assert.equal(logged.request, 'abc-1');
    assert.match(logged.err.stack, /swordfish/);
  });
});

describe('bodies of responses that cannot be sent', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-bodies-'));
  after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'file');
  const bodies: Readable[] = [];
  const lateRequests: unknown[] = [];
  /** Whether this process has the file open. */
  const isOpen = () =>
    readdirSync('/proc/self/fd').some((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`) === path;
      } catch {
        return false;
      }
    });
  let madeBodies = 0;
  const bodyOf = async (kind: string) => {
    const file = kind === 'file' ? await OpenFile.open(path) : undefined;
    madeBodies++;
    if (file !== undefined) return new FilePart(file, 0, 1);
    const body = new Readable({ read() {} });
    bodies.push(body);
    return body;
  };
  const other = createKernelServer({
    routes: [
      route({ method: 'GET', path: '/_proto/client/v3/late/:kind', auth: 'none' }, async (request) => {
        lateRequests.push(request);
        await new Promise((resolve) => request.signal.addEventListener('abort', resolve));
        return new Reply(200, await bodyOf(request.params.kind), {});
      }),
      route({ method: 'GET', path: '/_proto/client/v3/invalid/:kind', auth: 'none' }, async ({ params }) => {
        return new Reply(200, await bodyOf(params.kind), { 'X-Name': 'a\nb' });
      }),
    ],
  });
  let address = '';
  before(async () => {
    writeFileSync(path, 'x');
    address = (await other.start())[0]!;
  });
  after(() => other.stop(100));

  for (const kind of ['file', 'stream']) {
    it(`closes the ${kind} that a handler returns after the client has disconnected`, async () => {
      const seen = lateRequests.length;
      const before = madeBodies;
      const request = httpRequest(`${address}/_matrix/client/v3/late/${kind}`).end();
      request.on('error', () => {});
      await eventually('the request', () => lateRequests.length > seen);
      request.destroy();
      await eventually('the body', () => madeBodies > before);
      await eventually('the end of the body', () => !isOpen() && bodies.every((body) => body.destroyed));
    });

    it(`closes a ${kind} when a header of its response is not valid`, async () => {
      assert.equal((await fetch(`${address}/_matrix/client/v3/invalid/${kind}`)).status, 500);
      await eventually('the end of the body', () => !isOpen() && bodies.every((body) => body.destroyed));
    });
  }
});

describe('the access log', () => {
  it('writes one line per request to the access log, with access tokens redacted', async () => {
    logLines.length = 0;
    await call('GET', '/_matrix/client/v3/who/x?access_token=alice-secret&y=1', {
      headers: { 'x-forwarded-for': '203.0.113.7, 10.0.0.1' },
    });
    await call('GET', '/_matrix/client/v3/who/x?access%5Ftoken=alice-secret', bearer('admin-secret'));
    await call('GET', '/_matrix/client/v3/nothing?access_token=alice-secret');
    await eventually('the log of the requests', () => logLines.length >= 3);
    const entries = logLines.map((line) => JSON.parse(line));
    assert.equal(entries.length, 3);
    assert.equal(entries[0].url, '/_matrix/client/v3/who/x?access_token=<redacted>&y=1');
    assert.deepEqual(
      [entries[0].status, entries[0].user, entries[0].ip],
      [200, '@alice:test', '203.0.113.7'],
    );
    assert.doesNotMatch(logLines.join(), /secret/);
  });
});

describe('long polls', () => {
  it('aborts the signal of a long poll when its client disconnects', async () => {
    const seen = longPolls.length;
    const request = httpRequest(`${base()}/_matrix/client/v3/wait`).end();
    request.on('error', () => {});
    await eventually('the long poll', () => longPolls.length > seen);
    request.destroy();
    await eventually('the end of its signal', () => longPolls[seen]!.aborted);
  });

  it('answers long polls when the server stops, and closes all connections', {
    timeout: 600_000,
  }, async () => {
    const other = createKernelServer();
    const [address] = await other.start();
    const seen = longPolls.length;
    const answer = fetch(`${address}/_matrix/client/v3/wait`);
    const idle = connect(Number(new URL(address!).port), '127.0.0.1');
    idle.on('error', () => {});
    await eventually('the long poll', () => longPolls.length > seen);
    await other.stop(60_000);
    assert.deepEqual(await (await answer).json(), { waited: true });
    idle.destroy();
    await assert.rejects(fetch(`${address}/health`));
  });
});
