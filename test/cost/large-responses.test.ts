import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { costAfterRetries, exceeds } from '../support/clocks/thread-cost.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import type { ApiAnswer } from '../support/servers/api-call.ts';
import { enc, TestClient } from '../support/users/test-client.ts';

const MiB = 1024 * 1024;

/** Repeats JSON items until they have about `bytes` bytes. @param item returns an item by its index */
const items = (bytes: number, item: (index: number) => string): string => {
  const list: string[] = [];
  for (let size = 0, index = 0; size < bytes; index++) {
    const text = item(index);
    list.push(text);
    size += text.length + 1;
  }
  return list.join();
};

const evilUser = (index: number) => `@user${index}:evil.test`;

/** The keys of a device with the maximum length, as JSON. */
const deviceKeys = (userId: string, deviceId: string) =>
  `"${deviceId}":${JSON.stringify({
    user_id: userId,
    device_id: deviceId,
    algorithms: ['m.olm.v1.curve25519-aes-sha2'],
    keys: { [`ed25519:${deviceId}`]: 'x'.repeat(43), [`curve25519:${deviceId}`]: 'x'.repeat(43) },
    signatures: { [userId]: { [`ed25519:${deviceId}`]: 'x'.repeat(86) } },
    more: 'x'.repeat(3_500),
  })}`;

const room = (index: number, more = '') =>
  `{"room_id":"!room${index}:evil.test","num_joined_members":1,"world_readable":true,"guest_can_join":true,` +
  `"join_rule":"public","name":"${'x'.repeat(300)}"${more}}`;

const child = (index: number) =>
  `{"type":"m.space.child","state_key":"!room${index}:evil.test","sender":"@a:evil.test","origin_server_ts":1,` +
  `"content":{"via":["evil.test"]}}`;

const space = (children: string, summaries: string) =>
  `{"room":${room(0, `,"room_type":"m.space","children_state":[${children}]`)},"children":[${summaries}],"inaccessible_children":[]}`;

/** A response of another server, and the request that makes this server ask for it. */
interface Case {
  /** The beginning of the method and path of the request of this server. */
  readonly request: string;
  /** Returns the body of the response of the other server. */
  readonly response: () => string;
  /** The request of the client. @param attempt differs between repetitions, so that nothing is answered from a cache */
  readonly send: (client: TestClient, attempt: number) => Promise<ApiAnswer>;
  /** The status of the answer to the client. */
  readonly status: number;
}

const query = (client: TestClient, attempt: number) =>
  client.call('POST', '/keys/query', { device_keys: { [evilUser(attempt)]: [] } });
const claim = (client: TestClient, attempt: number) =>
  client.call('POST', '/keys/claim', {
    one_time_keys: { [evilUser(attempt)]: { A: 'signed_curve25519' } },
  });
const profile = (client: TestClient, attempt: number) =>
  client.call('GET', `/profile/${enc(evilUser(attempt))}`);
const roomList = (client: TestClient) =>
  client.call('GET', '/publicRooms', undefined, { server: 'evil.test', limit: 500 });
const summary = (client: TestClient) =>
  client.request('GET', `/_matrix/client/v1/room_summary/${enc('!room0:evil.test')}`, undefined, {
    via: 'evil.test',
  });
const alias = (client: TestClient, attempt: number) =>
  client.call('GET', `/directory/room/${enc(`#alias${attempt}:evil.test`)}`);

/** Numbers with fractions take the longest to parse, because they keep their notation. */
const fractions = (bytes: number) => items(bytes, () => '1.5');

const cases: Readonly<Record<string, Case>> = {
  'a profile with thousands of small fields': {
    request: 'GET /_matrix/federation/v1/query/profile',
    response: () => `{${items(64 * 1024 - 100, (index) => `"k${index}":{}`)}}`,
    send: profile,
    status: 200,
  },
  'a rejected profile that lists numbers such as 1.5': {
    request: 'GET /_matrix/federation/v1/query/profile',
    response: () => `{"a":[${fractions(120 * 1024)}]}`,
    send: (client, attempt) => profile(client, 1_000 + attempt),
    status: 502,
  },
  'a rejected alias that lists 200 kB of servers': {
    request: 'GET /_matrix/federation/v1/query/directory',
    response: () =>
      `{"room_id":"!a:evil.test","servers":[${items(200 * 1024, (index) => `"s${index}.example"`)}]}`,
    send: alias,
    status: 502,
  },
  'a list of 10,000 rooms': {
    request: 'GET /_matrix/federation/v1/publicRooms',
    response: () => `{"chunk":[${Array.from({ length: 10_000 }, (_, index) => room(index)).join()}]}`,
    send: roomList,
    status: 200,
  },
  'a rejected room list of numbers such as 1.5': {
    request: 'GET /_matrix/federation/v1/publicRooms',
    response: () => `{"chunk":[${fractions(7 * MiB)}]}`,
    send: roomList,
    status: 502,
  },
  'a space of 9,000 children': {
    request: 'GET /_matrix/federation/v1/hierarchy',
    response: () =>
      space(
        Array.from({ length: 9_000 }, (_, index) => child(index)).join(),
        Array.from({ length: 5_000 }, (_, index) => room(index)).join(),
      ),
    send: summary,
    status: 200,
  },
  'a rejected space whose children are numbers such as 1.5': {
    request: 'GET /_matrix/federation/v1/hierarchy',
    response: () => space(fractions(7 * MiB), ''),
    send: summary,
    status: 404,
  },
  'a response with the keys of 1,800 devices': {
    request: 'POST /_matrix/federation/v1/user/keys/query',
    response: () => {
      const devices = (userId: string) =>
        Array.from({ length: 300 }, (_, index) => deviceKeys(userId, `D${index}`)).join();
      const users = Array.from({ length: 6 }, (_, index) => evilUser(index));
      return `{"device_keys":{${users.map((userId) => `"${userId}":{${devices(userId)}}`).join()}}}`;
    },
    send: query,
    status: 200,
  },
  'a rejected list of numbers in place of device keys': {
    request: 'POST /_matrix/federation/v1/user/keys/query',
    response: () => `{"device_keys":[${fractions(7 * MiB)}]}`,
    send: query,
    status: 200,
  },
  'a rejected list of numbers in place of one-time keys': {
    request: 'POST /_matrix/federation/v1/user/keys/claim',
    response: () => `{"one_time_keys":[${fractions(3 * MiB)}]}`,
    send: claim,
    status: 200,
  },
};

describe('the cost of large responses of other servers, and of requests to many servers', () => {
  let several: SeveralServers;
  let server: FederatedServer;
  let evil: ScriptedServer;
  let client: TestClient;
  before(async () => {
    several = new SeveralServers('sqlite');
    server = await several.homeserver('a.test');
    evil = await several.scripted('evil.test');
    client = new TestClient(server, await server.register('anna'));
  });
  after(() => several.stop());

  for (const [name, { request, response, send, status }] of Object.entries(cases)) {
    it(`${name} costs less than 200 ms of CPU and blocks for less than 50 ms`, async () => {
      const body = Buffer.from(response());
      evil.on(request, (_request, raw) => {
        raw.writeHead(200, { 'content-type': 'application/json' }).end(body);
        return undefined;
      });
      let attempt = 0;
      // The other server is a part of this process, so its CPU time counts as well.
      const allowed = { longest: 50, total: 200 };
      const cost = await costAfterRetries(allowed, async () => {
        const answer = await send(client, attempt++);
        assert.equal(answer.status, status, answer.raw.slice(0, 200));
      });
      assert.ok(
        !exceeds(cost, allowed),
        `${Math.round(cost.total)} ms, ${Math.round(cost.longest)} at a time`,
      );
    });
  }

  it('a key query for users of 5,000 unreachable servers costs less than 200 ms of CPU and blocks for less than 50 ms', async () => {
    let attempt = 0;
    const allowed = { longest: 50, total: 200 };
    const cost = await costAfterRetries(allowed, async () => {
      // Other servers in each attempt: requests to servers that have not answered are not sent again for a while.
      const ids = Array.from({ length: 5_000 }, (_, index) => `@user:s${index}x${attempt}.test`);
      attempt++;
      const device_keys = Object.fromEntries(ids.map((userId) => [userId, []]));
      const answer = await client.call('POST', '/keys/query', { device_keys });
      assert.equal(Object.keys(answer.body['failures'] as object).length, 5_000);
    });
    assert.ok(!exceeds(cost, allowed), `${Math.round(cost.total)} ms, ${Math.round(cost.longest)} at a time`);
  });
});
