import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, type LeftRoomJson, TestClient } from '../../../test/support/users/test-client.ts';

type LeftRoom =
  | (LeftRoomJson & { readonly account_data?: { readonly events: readonly object[] } })
  | undefined;

for (const database of selectedDatabases(import.meta.url)) {
  describe(`left rooms in GET /sync, on ${database}`, () => {
    let server: TestServer;
    let names = 0;
    before(async () => {
      server = await startTestServer({ database });
    });
    after(() => server.stop());

    /** Creates a room of Anna's that Ben joins and sets account data for. */
    const annaAndBen = async () => {
      const [anna, ben] = await Promise.all([
        TestClient.register(server, `leaver${names++}`),
        TestClient.register(server, `leaver${names++}`),
      ]);
      const roomId = await anna.createRoom();
      await ben.join(roomId);
      const note = `/user/${enc(ben.id)}/rooms/${enc(roomId)}/account_data/org.example.note`;
      await ben.do('PUT', note, { n: 1 });
      return { anna, ben, roomId };
    };
    const withLeftRooms = { filter: { room: { include_leave: true, timeline: { limit: 2 } } } };
    const typesIn = (events: readonly { type: string }[] = []) => events.map(({ type }) => type);

    it('returns the account data that the user has in a left room', async () => {
      const { ben, roomId } = await annaAndBen();
      const since = (await ben.sync()).next_batch;
      const note = `/user/${enc(ben.id)}/rooms/${enc(roomId)}/account_data/org.example.note`;
      await ben.do('PUT', note, { n: 2 });
      await ben.leave(roomId);
      const notes = [{ type: 'org.example.note', content: { n: 2 } }];
      const leftRoom: LeftRoom = (await ben.sync(since)).rooms?.leave?.[roomId];
      assert.deepEqual(leftRoom?.account_data?.events, notes);
      const first: LeftRoom = (await ben.sync(undefined, withLeftRooms)).rooms?.leave?.[roomId];
      assert.deepEqual(first?.account_data?.events, notes);
      const noAccountData = { room: { include_leave: true, account_data: { not_types: ['org.*'] } } };
      const filtered: LeftRoom = (await ben.sync(undefined, { filter: noAccountData })).rooms?.leave?.[
        roomId
      ];
      assert.deepEqual(filtered?.account_data?.events, []);
    });

    it('returns left rooms in a first sync if the user was kicked or banned, or if the filter includes left rooms', async () => {
      const { anna, ben, roomId } = await annaAndBen();
      const leftRooms = async (filter: object = {}) =>
        Object.keys((await ben.sync(undefined, { filter })).rooms?.leave ?? {});
      const bannedRoom = await anna.createRoom();
      await anna.membership('ban', bannedRoom, ben);
      const rejectedInvite = await anna.createRoom({ preset: 'private_chat', invite: [ben.id] });
      await anna.membership('kick', rejectedInvite, ben);
      assert.deepEqual(await leftRooms(), []);
      for (const action of ['kick', 'ban'] as const) {
        await anna.membership(action, roomId, ben);
        assert.deepEqual(await leftRooms(), [roomId], action);
        assert.deepEqual(await leftRooms({ room: { not_rooms: [roomId] } }), []);
        if (action === 'kick') await ben.join(roomId);
      }
      await anna.membership('unban', roomId, ben);
      await ben.join(roomId);
      await ben.leave(roomId);
      assert.deepEqual(await leftRooms(), []);
      assert.ok((await leftRooms({ room: { include_leave: true } })).includes(roomId));
      await ben.join(roomId);
      await anna.membership('kick', roomId, ben);
      await ben.do('POST', `/rooms/${enc(roomId)}/forget`, {});
      assert.deepEqual(await leftRooms(), []);
    });

    it('returns the leave event of a left room unless the timeline filter excludes it', async () => {
      const { ben, roomId } = await annaAndBen();
      const since = (await ben.sync()).next_batch;
      await ben.leave(roomId);
      const timeline = async (filter: object) =>
        (await ben.sync(since, { filter: { room: { timeline: filter } } })).rooms?.leave?.[roomId]?.timeline;
      assert.deepEqual(typesIn((await timeline({ types: ['m.room.member'] }))?.events), ['m.room.member']);
      assert.deepEqual((await timeline({ not_types: ['m.room.member'] }))?.events, []);
      assert.deepEqual((await timeline({ not_rooms: [roomId] }))?.events, []);
    });

    it('returns at most limit events of a room in which the user was banned after being kicked, and the ban as the last of them', async () => {
      const { anna, ben, roomId } = await annaAndBen();
      await anna.membership('kick', roomId, ben);
      await anna.membership('ban', roomId, ben);
      const memberships = async (limit: number) => {
        const filter = { room: { include_leave: true, timeline: { limit } } };
        const left = (await ben.sync(undefined, { filter })).rooms?.leave?.[roomId];
        return left?.timeline.events.map(({ content }) => content['membership']);
      };
      assert.deepEqual(await memberships(1), ['ban']);
      assert.deepEqual(await memberships(2), ['leave', 'ban']);
      assert.deepEqual(await memberships(3), ['join', 'leave', 'ban']);
    });

    it('returns the leave event in the state of a left room if the client wants no timeline', async () => {
      const { anna, ben, roomId } = await annaAndBen();
      const declined = await anna.createRoom({ preset: 'private_chat', invite: [ben.id] });
      const since = (await ben.sync()).next_batch;
      await ben.leave(roomId);
      await ben.leave(declined);
      for (const lazy_load_members of [false, true]) {
        const room = { include_leave: true, timeline: { limit: 0 }, state: { lazy_load_members } };
        for (const from of [undefined, since]) {
          const { rooms } = await ben.sync(from, { filter: { room } });
          for (const id of from === undefined ? [roomId] : [roomId, declined]) {
            const leftRoom = rooms?.leave?.[id];
            assert.deepEqual(leftRoom?.timeline.events, []);
            const memberEventsOfBen = leftRoom?.state?.events.filter(({ state_key }) => state_key === ben.id);
            assert.deepEqual(
              memberEventsOfBen?.map(({ content }) => content['membership']),
              ['leave'],
            );
          }
        }
      }
    });

    it('returns left rooms again, including their state, if full_state is set and the filter includes left rooms', async () => {
      const { anna, ben, roomId } = await annaAndBen();
      await anna.setState(roomId, 'm.room.topic', { topic: 'then' });
      await ben.leave(roomId);
      await anna.setState(roomId, 'm.room.topic', { topic: 'later' });
      const since = (await ben.sync()).next_batch;
      assert.equal((await ben.sync(since, { full_state: true })).rooms?.leave, undefined);
      assert.equal((await ben.sync(since, withLeftRooms)).rooms?.leave, undefined);
      const leftRoom = (await ben.sync(since, { ...withLeftRooms, full_state: true })).rooms?.leave?.[roomId];
      assert.deepEqual([leftRoom?.timeline.events, leftRoom?.timeline.limited], [[], false]);
      const topic = leftRoom?.state?.events.find(({ type }) => type === 'm.room.topic');
      assert.deepEqual(topic?.content['topic'], 'then');
      const memberEventOfBen = leftRoom?.state?.events.find(({ state_key }) => state_key === ben.id);
      assert.equal(memberEventOfBen?.content['membership'], 'leave');
    });

    it('returns membership changes from before the leave event of a left room with lazy-loaded members', async () => {
      const { anna, ben, roomId } = await annaAndBen();
      const [cleo, dora] = await Promise.all([
        TestClient.register(server, `leaver${names++}`),
        TestClient.register(server, `leaver${names++}`),
      ]);
      for (const person of [cleo, dora]) await person.join(roomId);
      const lazy = { filter: { room: { state: { lazy_load_members: true }, timeline: { limit: 3 } } } };
      const since = (await ben.sync(undefined, lazy)).next_batch;
      await cleo.leave(roomId);
      await anna.say(roomId, 'one');
      await dora.say(roomId, 'two');
      await ben.leave(roomId);
      const leftRoom = (await ben.sync(since, lazy)).rooms?.leave?.[roomId];
      assert.equal(leftRoom?.timeline.limited, true);
      const members = new Map(
        leftRoom?.state?.events.map((event) => [event.state_key, event.content['membership']]),
      );
      assert.deepEqual(
        [members.get(cleo.id), members.get(dora.id), members.get(anna.id)],
        ['leave', 'join', 'join'],
      );
    });
  });
}
