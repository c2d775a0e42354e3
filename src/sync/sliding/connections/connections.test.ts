import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { skippableClock } from '../../../../test/support/clocks/skippable-clock.ts';
import { selectedDatabases } from '../../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../../test/support/servers/server.ts';
import { SlidingClient } from '../../../../test/support/users/sliding-client.ts';
import { TestClient } from '../../../../test/support/users/test-client.ts';

const body = {
  lists: { all: { ranges: [[0, 9]], timeline_limit: 2, required_state: [['m.room.name', '']] } },
};

/**
 * Minimum milliseconds of a timer that ends a long poll of these tests. Other timers of the server are shorter than
 * this or longer than `maxPoll`, so tests recognise the timer of a long poll.
 */
const minPoll = 200_000;

/** Maximum milliseconds of a timer that ends a long poll. */
const maxPoll = 220_000;

for (const database of selectedDatabases(import.meta.url)) {
  describe(`connections of sliding sync on ${database}`, () => {
    let server: TestServer;
    const clock = skippableClock();
    let anna: TestClient;
    let roomId: string;
    before(async () => {
      server = await startTestServer({ database, clock });
      anna = await TestClient.register(server, 'anna');
      roomId = await anna.createRoom({ name: 'Hall' });
    });
    after(() => server.stop());

    const timelineOf = ({ body: answer }: { body: Record<string, unknown> }) =>
      (answer as unknown as Awaited<ReturnType<SlidingClient['sync']>>).rooms[roomId]?.timeline?.map(
        ({ content }) => content['body'],
      );

    it('continues a connection at the position of the client after a restart', async () => {
      const client = new SlidingClient(anna, 'restart');
      await client.sync(body);
      await anna.say(roomId, 'before');
      await server.restart();
      await anna.say(roomId, 'after');
      const room = (await client.sync(body)).rooms[roomId];
      assert.equal(room?.initial, undefined);
      assert.deepEqual(
        room?.timeline?.map(({ content }) => content['body']),
        ['before', 'after'],
      );
      assert.deepEqual((await client.sync(body)).rooms, {});
    });

    it('repeats an answer that did not arrive, also after a restart', async () => {
      const client = new SlidingClient(anna, 'lost');
      const lost = await client.request(body);
      assert.equal(lost.status, 200);
      await client.sync(body);
      await anna.say(roomId, 'once');
      for (const restart of [false, true, false]) {
        if (restart) await server.restart();
        assert.deepEqual(timelineOf(await client.request(body)), ['once']);
      }
      const second = await anna.createRoom();
      const later = await anna.createRoom();
      // The answer with the new rooms is lost; the next request is for only one of these rooms.
      assert.equal(Object.keys((await client.request(body)).body['rooms'] as object).length, 3);
      const narrow = { lists: { all: { ...body.lists.all, ranges: [[0, 0]] } } };
      assert.deepEqual(Object.keys((await client.sync(narrow)).rooms), [later]);
      await server.restart();
      const rooms = (await client.sync(body)).rooms;
      assert.equal(rooms[second]?.initial, true);
      assert.equal(rooms[later]?.initial, undefined);
    });

    it('rejects earlier positions, positions of other connections and malformed positions with M_UNKNOWN_POS', async () => {
      const client = new SlidingClient(anna, 'old');
      await client.sync(body);
      const old = client.pos!;
      await client.sync(body);
      await client.sync(body);
      const otherClient = new SlidingClient(anna, 'other client');
      await otherClient.sync(body);
      for (const pos of [old, otherClient.pos!, 'c1_1_1_1', 'nonsense', old.replace(/_\d+$/, '_999999999')]) {
        const { status, body: error } = await client.request(body, { pos });
        assert.deepEqual([status, error['errcode']], [400, 'M_UNKNOWN_POS'], pos);
      }
      await client.sync(body);
      const newConnection = await client.request(body, { pos: undefined });
      assert.equal(newConnection.status, 200);
    });

    it('starts a new connection for a request without a position', async () => {
      const client = new SlidingClient(anna, 'anew');
      const first = await client.sync(body);
      client.pos = undefined;
      const second = await client.sync(body);
      assert.equal(second.rooms[roomId]?.initial, true);
      const { status } = await client.request(body, { pos: first.pos });
      assert.equal(status, 400);
    });

    it('limits the number of connections of each device, and drops the least recently used connection', async () => {
      const ben = await TestClient.register(server, 'ben');
      await ben.createRoom();
      const clients = Array.from({ length: 17 }, (_, index) => new SlidingClient(ben, `number ${index}`));
      for (const client of clients) await client.sync(body);
      assert.equal((await clients[0]!.request(body)).body['errcode'], 'M_UNKNOWN_POS');
      for (const client of clients.slice(1)) await client.sync(body);
    });

    it('deletes the connections of a device together with the device', async () => {
      const cleo = await TestClient.register(server, 'cleo');
      await cleo.createRoom();
      const { pos } = await new SlidingClient(cleo).sync(body);
      const { device_id } = await cleo.do('GET', '/account/whoami');
      await cleo.do('POST', '/logout', {});
      await server.restart();
      const { body: login } = await server.api('POST', '/_matrix/client/v3/login', {
        body: {
          type: 'm.login.password',
          identifier: { type: 'm.id.user', user: cleo.id },
          password: 'correct horse',
          device_id,
        },
      });
      const userId = cleo.id;
      const deviceId = String(device_id);
      const token = String(login['access_token']);
      const loggedInAgain = new SlidingClient(new TestClient(server, { userId, deviceId, token }));
      assert.equal((await loggedInAgain.request(body, { pos })).body['errcode'], 'M_UNKNOWN_POS');
    });

    it('returns an empty answer to a request when the client sends another request on the connection', async () => {
      const client = new SlidingClient(anna, 'superseded');
      await client.sync(body);
      const waiting = client.request(body, { timeout: maxPoll });
      await clock.untilTimerRuns([minPoll, maxPoll]);
      await anna.say(roomId, 'ends the long poll');
      const answered = await waiting;
      assert.deepEqual(timelineOf(answered), ['ends the long poll']);
      const first = client.request(body, { timeout: maxPoll, pos: String(answered.body['pos']) });
      await clock.untilTimerRuns([minPoll, maxPoll]);
      const fewerEvents = { lists: { all: { ...body.lists.all, timeline_limit: 1 } } };
      const second = client.request(fewerEvents, { timeout: 10, pos: String(answered.body['pos']) });
      assert.deepEqual((await first).body['rooms'], {});
      assert.equal((await second).status, 200);
    });
  });
}
