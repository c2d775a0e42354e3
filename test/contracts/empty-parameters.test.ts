import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { enc, Person } from '../support/person.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

describe('tokens with nothing in them', () => {
  let server: TestServer;
  let anna: Person;
  let room: string;
  let message: string;
  before(async () => {
    server = await startTestServer({ database: 'sqlite' });
    anna = await Person.register(server, 'anna');
    room = await anna.createRoom();
    message = await anna.say(room, 'hello');
  });
  after(() => server.stop());

  const search = { search_categories: { room_events: { search_term: 'hello' } } };
  const operations: [method: string, path: (room: string, event: string) => string, tokens: string[]][] = [
    ['GET', (id) => `/_matrix/client/v3/rooms/${id}/messages?dir=b`, ['from', 'to']],
    ['GET', (id) => `/_matrix/client/v3/rooms/${id}/members?membership=join`, ['at']],
    ['GET', (id, event) => `/_matrix/client/v1/rooms/${id}/relations/${event}?limit=5`, ['from', 'to']],
    ['GET', (id) => `/_matrix/client/v1/rooms/${id}/threads?limit=5`, ['from']],
    ['GET', (id) => `/_matrix/client/v1/rooms/${id}/hierarchy?limit=5`, ['from']],
    ['GET', () => '/_matrix/client/v3/publicRooms?limit=5', ['since']],
    ['GET', () => '/_matrix/client/v3/notifications?limit=5', ['from']],
    ['GET', () => '/_matrix/client/v3/events?timeout=0', ['from']],
    ['GET', () => '/_matrix/client/v3/sync?timeout=0', ['since']],
    ['POST', () => '/_matrix/client/v3/search?x=y', ['next_batch']],
  ];
  for (const [method, pathOf, tokens] of operations) {
    it(`are none: ${tokens.join(' and ')} of ${pathOf('', '').split('?')[0]}`, async () => {
      const path = pathOf(enc(room), enc(message));
      const body = method === 'POST' ? search : undefined;
      const [without, empty, nonsense] = await Promise.all(
        ['', ...['', 'nonsense'].map((value) => tokens.map((token) => `&${token}=${value}`).join(''))].map(
          (query) => anna.ask(method, path + query, body),
        ),
      );
      assert.deepEqual([without!.status, empty!.status], [200, 200], empty!.raw);
      assert.deepEqual(Object.keys(empty!.body), Object.keys(without!.body));
      assert.deepEqual([nonsense!.status, nonsense!.body['errcode']], [400, 'M_INVALID_PARAM']);
    });
  }
});
