import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, before, beforeEach, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { JsonObject } from '../../src/protocol/index.ts';
import { skippableClock } from '../support/clocks/skippable-clock.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { SeveralServers } from '../support/other-servers/several-servers.ts';
import { SignedRoom } from '../support/rooms/signed-room.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const makeHandshake = 'GET /_matrix/federation/v1/make_';
const mebibyte = 1024 * 1024;

/** Returns a function that answers with these bytes, headers and status. */
const respond =
  (body: string | Buffer, headers: Record<string, string | string[]> = {}, status = 200) =>
  (response: ServerResponse) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
  };

/** Timeout of requests to other servers, in milliseconds. */
const timeout = 100_000;

/** Writes one byte every 20 ms and never ends. The promise resolves after some bytes. */
const dripBytes = (start: string, byte: string) => (response: ServerResponse) =>
  new Promise<void>((resolve) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write(start);
    let written = 0;
    const timer = setInterval(() => {
      response.write(byte);
      if (++written === 5) resolve();
    }, 20);
    response.on('close', () => clearInterval(timer));
  });

/** Responses that never end. The test waits for a returned promise before it lets the timeout pass. */
const endlessAnswers: [what: string, answer: (response: ServerResponse) => Promise<void> | void][] = [
  ['sent byte by byte', dripBytes('{', ' ')],
  ['with an endless string sent byte by byte', dripBytes('{"room_version":"', 'x')],
  ['that never comes', () => undefined],
  ['with headers and no body', (response) => response.writeHead(200).flushHeaders()],
];

/** Responses that fail a join at once. */
const invalidAnswers: [what: string, answer: (response: ServerResponse) => void][] = [
  [
    'that breaks off in the middle',
    (response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
      response.write('{"event":', () => response.destroy());
    },
  ],
  ['that is only a closed connection', (response) => response.destroy()],
  [
    'compressed from 80 MiB',
    respond(gzipSync(Buffer.alloc(80 * mebibyte, ' ')), { 'content-encoding': 'gzip' }),
  ],
  ['compressed twice', respond(gzipSync(gzipSync('{}')), { 'content-encoding': 'gzip, gzip' })],
  ['with a content encoding that was not requested', respond('{}', { 'content-encoding': 'br' })],
  ['with invalid gzip data', respond('garbage', { 'content-encoding': 'gzip' })],
  ['with deeply nested arrays', respond('['.repeat(200_000) + ']'.repeat(200_000))],
  ['with deeply nested objects', respond(`${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`)],
  ['with invalid UTF-8', respond(Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]))],
  ['with lone surrogates', respond('{"room_version":"\\ud800","event":{"\\udfff":1}}')],
  ['that is an array', respond('[]')],
  ['that is an infinite number', respond('1e999')],
  ['with an empty body', respond('')],
  ['with status 204', respond('', {}, 204)],
  ['in HTML', respond('<html></html>', { 'content-type': 'text/html' })],
  ['in plain text', respond('{}', { 'content-type': 'text/plain' })],
  [
    'with keys that have a meaning in JavaScript',
    respond('{"__proto__":{"room_version":"11","event":{}},"constructor":1}'),
  ],
  ['that redirects to another server', respond('', { location: 'https://a.test/' }, 307)],
  ['that redirects to a file', respond('', { location: 'file:///etc/passwd' }, 301)],
  ['with 100,000 bytes of headers', respond('{}', { 'x-long': 'x'.repeat(100_000) })],
  ['with 2,000 headers', respond('{}', { 'x-many': Array<string>(2_000).fill('x'.repeat(40)) })],
  ['with status 500 and invalid JSON', respond('[', {}, 500)],
  [
    'with an endless error body',
    (response) => {
      response.writeHead(400, { 'content-type': 'application/json' });
      const flood = () => {
        if (!response.destroyed) response.write(' '.repeat(256 * 1024), () => setImmediate(flood));
      };
      flood();
    },
  ],
];

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('an HTTP response of a remote server', () => {
    let several: SeveralServers;
    let evil: ScriptedServer;
    let anna: TestClient;
    let room: SignedRoom;
    const clock = skippableClock();
    before(async () => {
      const federation = { max_short_retries: 0, client_timeout: timeout };
      const config = { federationClient: { federation } };
      ({
        several,
        peer: evil,
        anna,
      } = await SeveralServers.withScriptedServer(kind, 'evil.test', { clock, config }));
    });
    after(() => several.stop());
    beforeEach(() => {
      room = new SignedRoom('11', { serverName: 'evil.test', key: evil.key });
    });
    const join = () => anna.call('POST', `/join/${enc(room.roomId)}`, {}, { via: 'evil.test' });

    for (const [what, answer] of endlessAnswers) {
      it(`fails the join with 502 after the timeout for a response ${what}`, async () => {
        const { promise: begun, resolve } = Promise.withResolvers<void>();
        evil.on(makeHandshake, (_request, response) => {
          resolve(answer(response));
          return undefined;
        });
        const joining = join();
        await begun;
        clock.advance(timeout);
        const { status, body } = await joining;
        assert.deepEqual([status, body['errcode']], [502, 'M_UNKNOWN'], JSON.stringify(body));
      });
    }

    for (const [what, answer] of invalidAnswers) {
      it(`fails the join with 502 for a response ${what}`, async () => {
        evil.on(makeHandshake, (_request, response) => {
          answer(response);
          return undefined;
        });
        const { status, body } = await join();
        assert.deepEqual([status, body['errcode']], [502, 'M_UNKNOWN'], JSON.stringify(body));
      });
    }

    it('lets the user join when the responses are correct', async () => {
      evil.on(makeHandshake, () => room.membershipTemplate(anna.id, 'join'));
      evil.on('PUT /_matrix/federation/v2/send_join/', () => ({ ...room.stateAndAuthChain() }));
      const { status, raw: text } = await join();
      assert.equal(status, 200, text);
    });

    it('answers /sync after a knock whose response contains malformed knock_room_state', async () => {
      room.setState('m.room.join_rules', { join_rule: 'knock' });
      evil.on(makeHandshake, () => room.membershipTemplate(anna.id, 'knock'));
      const event = (type: unknown, content: unknown) => ({
        type,
        state_key: '',
        sender: room.creator,
        content,
      });
      const strippedStates: unknown[] = [
        5,
        {},
        [null, 5, 'x', [], {}],
        [event(5, {}), event('m.room.name', null), event('m.room.name', { name: { a: ['\0'] } })],
        [event('m.room.topic', { topic: 'x'.repeat(300_000) })],
        Array(5_000).fill(event('m.room.name', { name: 'x'.repeat(100) })),
        [{ type: '__proto__', state_key: '__proto__', sender: '__proto__', content: { ['__proto__']: 1 } }],
      ];
      for (const strippedState of strippedStates) {
        evil.on(
          'PUT /_matrix/federation/v1/send_knock/',
          () => ({ knock_room_state: strippedState }) as JsonObject,
        );
        const path = `/knock/${enc(room.roomId)}`;
        const { status } = await anna.call('POST', path, {}, { via: 'evil.test' });
        assert.ok([200, 502].includes(status), String(status));
        const syncText = JSON.stringify(await anna.sync());
        assert.ok(syncText.length < 200_000, String(syncText.length));
        evil.on('GET /_matrix/federation/v1/make_leave', () => [
          403,
          { errcode: 'M_FORBIDDEN', error: 'no' },
        ]);
        if (status === 200) await anna.leave(room.roomId);
        evil.on('GET /_matrix/federation/v1/make_knock', () => room.membershipTemplate(anna.id, 'knock'));
      }
    });
  });
});
