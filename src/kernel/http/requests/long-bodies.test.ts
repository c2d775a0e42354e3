import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientRequest, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { Type } from 'typebox';
import { eventually } from '../../../../test/clients/eventually.ts';
import { canonicalJson, type JsonValue, MatrixError } from '../../../protocol/index.ts';
import { type Clock, systemClock } from '../../clock.ts';
import { silentLogger } from '../../observability/index.ts';
import { createHttpServer, type HttpServer, route } from '../index.ts';
import { defaultClientBounds } from './body-reader.ts';
import { BytesInMemory, type MemoryBounds } from './bytes-in-memory.ts';
import type { UnverifiedBounds } from './unverified-bodies.ts';

const maxBytes = 200 * 65_536;
const unauthorized = () => new MatrixError(401, 'M_UNAUTHORIZED', 'The signature is invalid');

/** A body of about `bytes` bytes: a list that repeats one item. */
const bodyOf = (item: string, bytes: number) =>
  `{"list":[${Array(Math.floor(bytes / (item.length + 1)))
    .fill(item)
    .join(',')}]}`;

describe('long JSON bodies of requests', () => {
  let http: HttpServer;
  let base: URL;
  /** Milliseconds by which the monotonic clock of the server is ahead of the machine's clock. */
  let ahead: number;
  /** Whether a second passes between two reads of the clock, so that each time slice is over when its end is checked. */
  let isFast: boolean;
  /** Number of reads of the clock; while `isFast` is true, other requests can run after each read. */
  let clockReads: number;
  const timers = new Set<() => void>();
  const clock: Clock = {
    ...systemClock,
    monotonic: () => {
      clockReads++;
      if (isFast) ahead += 1_000;
      return systemClock.monotonic() + ahead;
    },
    setTimer: (_delay, callback) => {
      timers.add(callback);
      return { cancel: () => void timers.delete(callback) };
    },
  };
  /** Runs all timers. */
  const runTimers = () => {
    for (const callback of timers) callback();
  };
  let bodies: unknown[];
  /** The content that the signature covers; `undefined` for none. */
  let covered: string | undefined;
  let hasValidHeader: boolean;
  let verifiedContents: { content: Buffer | string | undefined }[];
  beforeEach(async () => {
    bodies = [];
    verifiedContents = [];
    covered = undefined;
    hasValidHeader = true;
    ahead = 0;
    isFast = false;
    clockReads = 0;
    await serve();
  });

  async function serve(unverifiedBounds?: UnverifiedBounds, clientBounds?: MemoryBounds): Promise<void> {
    const isCovered = (content: Buffer | string | undefined) => {
      verifiedContents.push({ content });
      return (
        covered !== undefined && content !== undefined && Buffer.from(covered).equals(Buffer.from(content))
      );
    };
    const contract = { auth: 'server', body: Type.Any(), bodyLimit: maxBytes } as const;
    http = createHttpServer({
      listeners: [
        {
          name: 'test',
          bind: { kind: 'tcp', port: 0, addresses: ['127.0.0.1'], tls: undefined },
          resources: [{ names: ['federation', 'client'], compress: false }],
          forwarded: true,
          requestIdHeader: undefined,
        },
      ],
      routes: [
        route({ method: 'PUT', path: '/_proto/federation/v1/send/x', ...contract }, ({ body }) => {
          bodies.push(body);
          return {};
        }),
        route(
          {
            method: 'POST',
            path: '/_proto/client/v3/any',
            auth: 'none',
            body: Type.Any(),
            bodyLimit: maxBytes,
          },
          ({ body }) => {
            bodies.push(body);
            return {};
          },
        ),
      ],
      authenticator: { authenticate: () => Promise.reject(new Error('no users')) },
      serverAuthenticator: {
        async readSignature() {
          if (!hasValidHeader) throw unauthorized();
          return {
            origin: 'a.example',
            async verify(content) {
              if (!isCovered(content)) throw unauthorized();
            },
            covers: async (content) => isCovered(content),
          };
        },
      },
      log: silentLogger,
      clock,
      ...(unverifiedBounds && { unverifiedBounds }),
      ...(clientBounds && { clientBounds }),
    });
    base = new URL((await http.start())[0]!);
  }
  afterEach(() => http.stop(0));

  /**
   * Begins a request, without its body.
   * @param length bytes of the body; `undefined`: sent in chunks
   * @param method PUT for a request of another server, POST for a request of a client
   */
  function begin(length: number | undefined, address = '192.0.2.1', method = 'PUT'): ClientRequest {
    const path = method === 'PUT' ? '/_matrix/federation/v1/send/x' : '/_matrix/client/v3/any';
    const headers = {
      'x-forwarded-for': address,
      'content-type': 'application/json',
      ...(length !== undefined && { 'content-length': String(length) }),
    };
    const sent = request({ host: base.hostname, port: base.port, method, path, headers, agent: false });
    sent.on('error', () => undefined);
    return sent;
  }

  async function answerTo(sent: ClientRequest): Promise<{ status: number; errcode: unknown }> {
    const [response] = await once(sent, 'response');
    const { errcode } = JSON.parse(await text(response)) as { errcode?: string };
    return { status: response.statusCode, errcode };
  }

  async function send(body: string | Buffer, address?: string, method?: string) {
    const bytes = Buffer.from(body as string);
    const sent = begin(bytes.length, address, method);
    sent.end(bytes);
    return answerTo(sent);
  }

  const ok = { status: 200, errcode: undefined };
  const forged = { status: 401, errcode: 'M_UNAUTHORIZED' };
  const limited = { status: 429, errcode: 'M_LIMIT_EXCEEDED' };

  it('rejects a request of another server without a valid Authorization header before it reads the body', async () => {
    hasValidHeader = false;
    const sent = begin(maxBytes);
    sent.write('{');
    assert.deepEqual(await answerTo(sent), forged);
    sent.destroy();
    assert.deepEqual(verifiedContents, []);
  });

  it('accepts a long body of canonical JSON, and a long body of JSON in another form', async () => {
    const value = { list: Array.from({ length: 9_000 }, (_, index) => ({ index, text: `"é\\${index}` })) };
    covered = canonicalJson(value as JsonValue);
    assert.deepEqual(await send(covered), ok);
    assert.equal(verifiedContents.length, 1);
    assert.deepEqual(await send(JSON.stringify(value, null, 1)), ok);
    assert.deepEqual(bodies, [value, value]);
    const chunked = begin(undefined);
    chunked.end(covered);
    assert.deepEqual(await answerTo(chunked), ok);
    assert.deepEqual(await send(covered.replace('"index":7,', '"index":8,')), forged);
    assert.equal(bodies.length, 3);
  });

  /** Sends a body, and checks that other requests could run after each 64 KiB while it was parsed. */
  const expectPauses = async (body: string, method?: string) => {
    isFast = true;
    const before = clockReads;
    assert.deepEqual(await send(body, undefined, method), ok);
    isFast = false;
    const pauses = clockReads - before;
    assert.ok(pauses >= body.length / 65_536 - 1, `${pauses} pauses for ${body.length} bytes`);
  };

  for (const item of [
    '[]',
    '{"a":{}}',
    '1',
    '1.5',
    '"\\u00e9"',
    '[[[[[[[[[[{"a":[1,2,3,"text"]}]]]]]]]]]]',
  ]) {
    it(`lets other requests run after each 64 KiB while it reads a long body of ${item}`, async () => {
      const body = bodyOf(item, 400_000);
      covered = body;
      await expectPauses(body);
      const spaced = body.replace(':', ' : ');
      covered = canonicalJson(JSON.parse(body) as JsonValue, 'as written');
      await expectPauses(spaced);
    });
  }

  it('lets other requests run after each 64 KiB while it reads long bodies of clients', async () => {
    for (const item of ['[]', '{"a":{}}', '1', '"\\u00e9"'])
      await expectPauses(bodyOf(item, item.length * 25_000), 'POST');
    assert.deepEqual(bodies.at(-1), JSON.parse(bodyOf('"\\u00e9"', '"\\u00e9"'.length * 25_000)));
  });

  it('rejects a body with too many values with 413 M_TOO_LARGE before all of it has arrived, and a body with too many members in one object', async () => {
    for (const [item, bytes] of [
      ['1', 5_000_000],
      ['[]', 4_000_000],
    ] as const) {
      const sent = begin(maxBytes);
      sent.write(bodyOf(item, bytes));
      assert.deepEqual(await answerTo(sent), { status: 413, errcode: 'M_TOO_LARGE' });
      sent.destroy();
    }
    const members = Array.from({ length: 60_000 }, (_, index) => `"${index}":1`).join();
    assert.deepEqual(await send(`{"a":{${members}}}`), { status: 413, errcode: 'M_TOO_LARGE' });
    assert.deepEqual(verifiedContents, []);
  });

  it('replaces items that are nested too deeply or are too long by null', async () => {
    const deep = `${'['.repeat(2_000)}${']'.repeat(2_000)}`;
    const long = JSON.stringify({ a: 'x'.repeat(1_100_000) });
    const body = `{"list":[${deep},1,${long},{"b":2},${'[],'.repeat(50_000)}3]}`;
    covered = body;
    assert.deepEqual(await send(body), ok);
    const [{ list }] = bodies as [{ list: unknown[] }];
    assert.deepEqual([list.length, ...list.slice(0, 4), list.at(-1)], [50_005, null, 1, null, { b: 2 }, 3]);
  });

  it('replaces an EDU by null when it would bring the EDUs of a transaction above the maximum number of values, counts each value of a long EDU as three, and keeps all events', async () => {
    const item = JSON.stringify({ a: Array(30_000).fill(1) });
    const long = JSON.stringify({ a: Array(30_000).fill(1), b: 'x'.repeat(10_000) });
    const body = `{"edus":[${Array(9).fill(item).join()},{"b":[]},${item}],"pdus":[${Array(9).fill(item).join()}]}`;
    covered = body;
    assert.deepEqual(await send(body), ok);
    const [{ edus, pdus }] = bodies as [{ edus: unknown[]; pdus: unknown[] }];
    assert.deepEqual(edus, [...Array(4).fill(JSON.parse(item)), ...Array(5).fill(null), { b: [] }, null]);
    assert.deepEqual(pdus, Array(9).fill(JSON.parse(item)));
    const mixed = `{"edus":[${[long, item, item, long].join()}]}`;
    covered = mixed;
    assert.deepEqual(await send(mixed), ok);
    assert.deepEqual(bodies.at(-1), { edus: [JSON.parse(long), JSON.parse(item), null, null] });
  });

  it('rejects a signed body that is not JSON with 400 M_NOT_JSON', async () => {
    for (const body of [bodyOf('[}', 300_000), bodyOf('"\u{d800}', 300_000), bodyOf('1 1', 300_000)]) {
      covered = body;
      assert.deepEqual(await send(body), { status: 400, errcode: 'M_NOT_JSON' });
    }
    assert.deepEqual(bodies, []);
  });

  it('reads no long body from an IP address for some time after three long bodies with invalid signatures', async () => {
    const body = bodyOf('{}', 100_000);
    for (let count = 0; count < 3; count++) assert.deepEqual(await send(body), forged);
    const unread = begin(maxBytes);
    unread.write('{');
    assert.deepEqual(await answerTo(unread), limited);
    unread.destroy();
    covered = body;
    assert.deepEqual(await send(body, '192.0.2.2'), ok);
    covered = '{}';
    assert.deepEqual(await send('{}'), ok);
    covered = body;
    ahead = 100_000;
    assert.deepEqual(await send(body), ok);
  });

  it('counts long bodies from all addresses of an IPv6 /64 network as if they came from one address', async () => {
    const body = bodyOf('{}', 100_000);
    for (const address of ['2001:db8::1', '2001:db8:0:0:1::', '2001:db8::ffff:0:0:2']) {
      assert.deepEqual(await send(body, address), forged);
    }
    assert.deepEqual(await send(body, '2001:db8::77'), limited);
    assert.deepEqual(await send(body, '2001:db8:0:1::77'), forged);
  });

  it('bounds the bytes of long bodies of clients that have arrived in part, for each client and in total', async () => {
    await http.stop(0);
    await serve(undefined, { ofSender: 300_000, total: 500_000 });
    const part = bodyOf('"x"', 200_000).slice(0, -2);
    const waiting: ClientRequest[] = [];
    const statuses: unknown[] = [];
    const beginLong = (address: string) => {
      const sent = begin(400_000, address, 'POST');
      waiting.push(sent);
      sent.once('response', ({ statusCode }) => statuses.push(statusCode));
      sent.write(part);
    };
    beginLong('192.0.2.1');
    beginLong('192.0.2.1');
    await eventually('an answer to one of two bodies of one client', () => statuses.length === 1);
    beginLong('192.0.2.2');
    beginLong('192.0.2.3');
    await eventually('an answer when the bodies of all clients are too many', () => statuses.length === 2);
    assert.deepEqual(statuses, [429, 429]);
    assert.deepEqual(await send('{}', '192.0.2.1', 'POST'), ok, 'a short body is still read');
    for (const sent of waiting) sent.destroy();
    await eventually('space after the clients have disconnected', async () => {
      const { status } = await send(bodyOf('"x"', 250_000), '192.0.2.1', 'POST');
      return status === 200;
    });
  });

  it('holds at most 32 MiB of long bodies of one user and 512 MiB in total by default', () => {
    const bytes = new BytesInMemory(defaultClientBounds);
    const mebibyte = 1024 * 1024;
    const held = Array.from({ length: 16 }, (_, number) => bytes.open(`@user${number}:test`));
    for (const body of held) body.add(32 * mebibyte);
    assert.throws(() => held[0]!.add(1), { errcode: 'M_LIMIT_EXCEEDED' });
    assert.throws(() => bytes.open('@another:test').add(1), { errcode: 'M_LIMIT_EXCEEDED' });
    held[0]!.release();
    held[0]!.add(1);
    assert.equal(bytes.total, 15 * 32 * mebibyte + 1);
  });

  it('bounds the bytes of bodies that wait for their verification, for each IP address and in total', async () => {
    await http.stop(0);
    await serve({ ofAddress: 2 * 1024 * 1024, total: 8 * 1024 * 1024 });
    const part = Buffer.from(bodyOf(`"${'x'.repeat(1_000)}"`, 750_000).slice(0, -2));
    const waiting: ClientRequest[] = [];
    const beginLong = (address: string) => {
      const sent = begin(maxBytes, address);
      waiting.push(sent);
      sent.write(part);
      return sent;
    };
    let answers = 0;
    for (let count = 0; count < 3; count++) {
      beginLong('192.0.2.1').once('response', () => answers++);
    }
    await eventually('an answer to one of three long bodies of one address', () => answers === 1);
    for (let address = 2; address < 8; address++) {
      for (let count = 0; count < 2; count++)
        beginLong(`192.0.2.${address}`).once('response', () => answers++);
    }
    await eventually('answers when the bodies of all addresses are too many', () => answers >= 3);
    assert.ok(answers <= 6, `${answers} of 15 bodies were rejected`);
    covered = '{}';
    assert.deepEqual(await send('{}', '192.0.2.100'), ok, 'a short body is still read');
    let closed = 0;
    for (const sent of waiting) sent.once('close', () => closed++);
    runTimers();
    await eventually('the end of bodies that arrive too slowly', () => closed + answers >= waiting.length);
    const body = bodyOf('{}', 100_000);
    covered = body;
    await eventually(
      'space after the other bodies were dropped',
      async () => (await send(body, '192.0.2.1')).status === 200,
    );
  });
});
