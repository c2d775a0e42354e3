import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { costAfterRetries, exceeds } from '../support/clocks/thread-cost.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { SignedRoom } from '../support/rooms/signed-room.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

/** About as many bytes as a response may have. */
const size = 60_000_000;

/** Repeats a JSON value until the list has about `bytes` bytes. */
const listOf = (value: string, bytes: number) =>
  `[${`${value},`.repeat(bytes / (value.length + 1))}${value}]`;

const list = (value: string, length: number) => `[${Array(length).fill(value).join()}]`;

/** Responses of useless values, just below the limit of bytes or below the bounds of values, and why they are refused. */
const responses: Readonly<Record<string, readonly [response: () => string, reason: RegExp]>> = {
  'empty objects as state': [
    () => `{"state":${listOf('{}', size)},"auth_chain":[]}`,
    /more than 500000 items/,
  ],
  'empty objects as auth chain': [
    () => `{"auth_chain":${listOf('{}', size)},"state":[]}`,
    /more than 500000 items/,
  ],
  'nearly as many empty objects as each list may have': [
    () => `{"state":${list('{}', 490_000)},"auth_chain":${list('{}', 490_000)}}`,
    /no create event/,
  ],
  'numbers in one event': [
    () => `{"state":[{"content":{"a":${listOf('1', size)}}}],"auth_chain":[]}`,
    /more than 8000000 values/,
  ],
  'nearly as many numbers as a response may have': [
    () => {
      const event = `{"content":{"a":${list('1.5', 480_000)}}}`;
      return `{"state":${list(event, 16)},"auth_chain":[]}`;
    },
    /no create event/,
  ],
  'nested lists': [
    () => `{"state":${listOf('['.repeat(500) + ']'.repeat(500), size)},"auth_chain":[]}`,
    /more than \d+ (objects and arrays|values)/,
  ],
  'a text of 60 MB': [
    () => `{"state":[{"content":{"body":"${'x'.repeat(size)}"}}],"auth_chain":[]}`,
    /more than 4194304 bytes/,
  ],
  'unsigned events': [
    () => {
      const content = { body: 'x'.repeat(300) };
      const event = { type: 'm.test', state_key: 'x'.repeat(200), content, room_id: '!a:b' };
      return `{"state":${list(JSON.stringify(event), 90_000)},"auth_chain":[]}`;
    },
    /no create event/,
  ],
};

describe('the cost of large hostile responses to send_join', () => {
  let several: SeveralServers;
  let server: FederatedServer;
  let evil: ScriptedServer;
  let client: TestClient;
  let room: SignedRoom;
  before(async () => {
    several = new SeveralServers('sqlite');
    server = await several.homeserver('a.test');
    evil = await several.scripted('evil.test');
    client = await server.registerClient('anna');
    room = new SignedRoom('11', { serverName: evil.name, key: evil.key });
    evil.on('GET /_matrix/federation/v1/make_join/', () => room.membershipTemplate(client.id, 'join'));
  });
  after(() => several.stop());

  for (const [what, [response, reason]] of Object.entries(responses)) {
    it(`refuses a join whose response has ${what}, with at most 4 seconds of CPU on the main thread, in turns of at most 50 ms`, async () => {
      const body = Buffer.from(response());
      evil.on('PUT /_matrix/federation/v2/send_join/', (_request, raw) => {
        raw.writeHead(200, { 'content-type': 'application/json' });
        Readable.from(pieces(body)).pipe(raw);
        return undefined;
      });
      // The other server is a part of this process, so its CPU time counts as well.
      const allowed = { longest: 50, total: 4_000 };
      const cost = await costAfterRetries(allowed, async () => {
        const answer = await client.call('POST', `/join/${enc(room.roomId)}`, {}, { via: evil.name });
        assert.equal(answer.status, 502, answer.raw);
        assert.match(answer.raw, reason);
      });
      assert.ok(
        !exceeds(cost, allowed),
        `${Math.round(cost.total)} ms on the main thread, ${Math.round(cost.longest)} at a time`,
      );
    });
  }
});

/** Cuts a body, so that sending it does not block the event loop that the measured server shares. */
function* pieces(body: Buffer): Generator<Buffer> {
  for (let start = 0; start < body.length; start += 65_536) yield body.subarray(start, start + 65_536);
}
