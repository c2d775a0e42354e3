import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { type ClientEventJson, TestClient } from '../../../test/support/users/test-client.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`timelines and their state in GET /sync, on ${database}`, () => {
    let server: TestServer;
    before(async () => {
      server = await startTestServer({ database });
    });
    after(() => server.stop());

    it('returns the memberships of users who left in the gap if full_state is set and members are lazy-loaded', async () => {
      const people: TestClient[] = [];
      for (let n = 0; n < 8; n++) people.push(await TestClient.register(server, `gap${n}`));
      const [anna, ben] = people as [TestClient, TestClient];
      const leaver = people[7] as TestClient;
      const roomId = await anna.createRoom();
      for (const person of people.slice(1)) await person.join(roomId);
      const lazy = { filter: { room: { state: { lazy_load_members: true }, timeline: { limit: 1 } } } };
      const since = (await ben.sync(undefined, lazy)).next_batch;
      await leaver.leave(roomId);
      for (const text of ['one', 'two']) await anna.say(roomId, text);
      const room = (await ben.sync(since, { ...lazy, full_state: true })).rooms?.join?.[roomId];
      assert.equal(room?.timeline.limited, true);
      const leave = room?.state?.events.find(({ state_key }) => state_key === leaver.id);
      assert.equal(leave?.content['membership'], 'leave');
      const unneeded = people[6]?.id;
      assert.equal(
        room?.state?.events.some(({ state_key }) => state_key === unneeded),
        false,
      );
    });

    it('returns a timeline that is not limited when the filter excludes all newer events, and no room without events that pass the filter', async () => {
      const anna = await TestClient.register(server, 'noise');
      const roomId = await anna.createRoom();
      const messageId = await anna.say(roomId, 'wanted');
      const noise = Array.from({ length: 120 }, (_, n) => anna.send(roomId, 'org.example.noise', { n }));
      await Promise.all(noise);
      const wanted = { filter: { room: { timeline: { types: ['m.room.message'], limit: 1 } } } };
      const first = await anna.sync(undefined, wanted);
      const { events, limited } = first.rooms?.join?.[roomId]?.timeline ?? {};
      assert.deepEqual([events?.map(({ event_id }) => event_id), limited], [[messageId], false]);
      const moreNoise = Array.from({ length: 120 }, (_, n) => anna.send(roomId, 'org.example.noise', { n }));
      await Promise.all(moreNoise);
      assert.equal((await anna.sync(first.next_batch, wanted)).rooms, undefined);
    });

    it('returns the membership of the user in `unsigned` of timeline events, and not of state events', async () => {
      const [cleo, dora] = [
        await TestClient.register(server, 'cleo'),
        await TestClient.register(server, 'dora'),
      ];
      const roomId = await cleo.createRoom();
      await cleo.say(roomId, 'before');
      await dora.join(roomId);
      await cleo.say(roomId, 'after');
      const { rooms } = await dora.sync(undefined, { filter: { room: { timeline: { limit: 3 } } } });
      const room = rooms?.join?.[roomId];
      const membershipsOf = (events: readonly ClientEventJson[] = []) =>
        events.map(({ unsigned }) => unsigned?.['membership']);
      assert.deepEqual(membershipsOf(room?.timeline.events), ['leave', 'join', 'join']);
      assert.deepEqual([...new Set(membershipsOf(room?.state?.events))], [undefined]);
      const { chunk } = await dora.do('GET', `/rooms/${encodeURIComponent(roomId)}/members`);
      assert.deepEqual(membershipsOf(chunk as ClientEventJson[]), [undefined, undefined]);
    });

    it('returns the state after the timeline under the stable or unstable name of state_after that the client requests', async () => {
      const anna = await TestClient.register(server, 'after');
      const roomId = await anna.createRoom();
      const since = (await anna.sync()).next_batch;
      await anna.setState(roomId, 'm.room.topic', { topic: 'new' });
      const sections = async (query: Record<string, boolean>) => {
        const { body } = await anna.call('GET', '/sync', undefined, { since, ...query });
        const { rooms } = body as { rooms: { join: Record<string, Record<string, { events: object[] }>> } };
        const entries = Object.entries(rooms.join[roomId] ?? {}).filter(([name]) => name.includes('state'));
        return entries.map(([name, { events }]) => [name, events.length]);
      };
      assert.deepEqual(await sections({}), [['state', 0]]);
      assert.deepEqual(await sections({ use_state_after: true }), [['state_after', 1]]);
      const unstable = 'org.matrix.msc4222';
      assert.deepEqual(await sections({ [`${unstable}.use_state_after`]: true }), [
        [`${unstable}.state_after`, 1],
      ]);
    });
  });
}
