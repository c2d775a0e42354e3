import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { selectedDatabases } from '../../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../../test/support/servers/server.ts';
import { SlidingClient } from '../../../../test/support/users/sliding-client.ts';
import { TestClient } from '../../../../test/support/users/test-client.ts';
import { oneList } from '../test/one-list.ts';

/** Approximate number of characters that one of the `entries` has in JSON. */
const entryLength = 210;

/** Returns `required_state` entries of about `characters` characters, different for each name. */
const entries = (characters: number, name: string) =>
  Array.from({ length: Math.floor(characters / entryLength) }, (_, index) => [
    'm.test',
    `${name}${index}`.padEnd(198),
  ]);

for (const database of selectedDatabases(import.meta.url)) {
  describe(`limits of requests and connections of sliding sync on ${database}`, () => {
    let server: TestServer;
    let anna: TestClient;
    before(async () => {
      const resources = [{ names: ['client' as const, 'metrics' as const] }];
      const listener = { port: 0, type: 'http' as const, bind_addresses: ['127.0.0.1'], resources };
      const config = { observability: { enable_metrics: true }, http: { listeners: [listener] } };
      server = await startTestServer({ database, config });
      anna = await TestClient.register(server, 'anna');
      await anna.createRoom();
    });
    after(() => server.stop());

    const cachedBytes = async () => {
      const { raw } = await server.api('GET', '/_synapse/metrics');
      return Number(/^server_cache_bytes\{name="sliding_sync_connections"\} (\d+)$/m.exec(raw)?.[1]);
    };

    const long = 'x'.repeat(256);
    const list = oneList().lists.all;
    const rejected: Readonly<Record<string, object>> = {
      'an event type of 256 characters': oneList({ required_state: [[long, '']] }),
      'a state key of 256 characters': oneList({ required_state: [['m.test', long]] }),
      'a list whose name has 256 characters': { lists: { [long]: list } },
      'required_state of 40,000 characters in a list': oneList({ required_state: entries(40_000, 'a') }),
      'required_state of 40,000 characters that lists request together for a room': {
        lists: {
          one: { ...list, required_state: entries(20_000, 'a') },
          other: { ...list, required_state: entries(20_000, 'b') },
        },
      },
    };
    for (const [name, body] of Object.entries(rejected)) {
      it(`rejects ${name} with 400 M_BAD_JSON`, async () => {
        const { status, body: error } = await new SlidingClient(anna, 'rejected').request(body);
        assert.deepEqual([status, error['errcode']], [400, 'M_BAD_JSON']);
      });
    }

    it('accepts required_state of 30,000 characters, and names of 255 characters', async () => {
      const name = 'x'.repeat(255);
      const required = [...entries(29_000, 'a'), [name, name]];
      const { lists } = await new SlidingClient(anna, 'accepted').sync({
        lists: { [name]: { ...list, required_state: required } },
      });
      assert.deepEqual(lists, { [name]: { count: 1 } });
    });

    it('ends a connection with M_UNKNOWN_POS when its requests contain more than 256 KiB of different required_state', async () => {
      const client = new SlidingClient(anna, 'many states');
      let accepted = 0;
      for (let number = 0; ; number++) {
        const { status, body } = await client.request(
          oneList({ required_state: entries(30_000, `${number}-`) }),
        );
        if (status !== 200) {
          assert.equal(body['errcode'], 'M_UNKNOWN_POS');
          break;
        }
        client.pos = String(body['pos']);
        accepted++;
        assert.ok(accepted < 10, 'there is no bound');
      }
      assert.equal(accepted, 8);
      client.pos = undefined;
      await client.sync(oneList());
    });

    it('answers 400 M_BAD_JSON to a first request for more than 256 KiB of different required_state', async () => {
      const ben = await TestClient.register(server, 'ben');
      const rooms = await Promise.all(Array.from({ length: 9 }, () => ben.createRoom()));
      const subscriptions = rooms.map((roomId, index) => {
        const required_state = entries(30_000, `${index}-`);
        return [roomId, { timeline_limit: 1, required_state }] as const;
      });
      const sendRequest = (selected: typeof subscriptions) =>
        new SlidingClient(ben).request({ room_subscriptions: Object.fromEntries(selected) });
      const { status, body } = await sendRequest(subscriptions);
      assert.deepEqual([status, body['errcode']], [400, 'M_BAD_JSON']);
      assert.equal((await sendRequest(subscriptions.slice(1))).status, 200);
    });

    it('adds the lazily loaded members that were sent to a client to the bytes of the cache', async () => {
      const members = await Promise.all(
        ['a', 'b'].map((letter) => TestClient.register(server, letter.repeat(200))),
      );
      const roomId = await anna.createRoom({ preset: 'public_chat' });
      for (const member of members) {
        await member.do('POST', `/join/${encodeURIComponent(roomId)}`, {});
        await member.say(roomId, 'hello');
      }
      const before = await cachedBytes();
      const subscription = { timeline_limit: 5, required_state: [['m.room.member', '$LAZY']] };
      await new SlidingClient(anna, 'members').sync({ room_subscriptions: { [roomId]: subscription } });
      const added = (await cachedBytes()) - before;
      assert.ok(added > 1_800 && added < 3_500, `${added} bytes`);
    });

    it('adds the texts of required_state and the names of lists to the bytes of the cache', async () => {
      const before = await cachedBytes();
      const name = 'x'.repeat(250);
      await new SlidingClient(anna, 'counted').sync({
        lists: { [name]: { ...list, required_state: entries(30_000, 'a') } },
      });
      const added = (await cachedBytes()) - before;
      assert.ok(added > 29_000 && added < 35_000, `${added} bytes`);
    });
  });
}
