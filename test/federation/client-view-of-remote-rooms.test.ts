import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { until } from '../support/other-servers/federation-sender.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { SlidingClient } from '../support/users/sliding-client.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const allRooms = { lists: { all: { ranges: [[0, 19]], timeline_limit: 5, required_state: [['*', '*']] } } };

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('clients in a room of another server', () => {
    let several: SeveralServers;
    let b: FederatedServer;
    let anna: TestClient;
    let ben: TestClient;
    before(async () => {
      ({ several, b, anna, ben } = await SeveralServers.pair(kind));
    });
    after(() => several.stop());

    it('sends the invite, a limited timeline after the join, new events and the ban, in /sync and in sliding sync', async () => {
      const roomId = await anna.createRoom({ preset: 'private_chat', name: 'Far away' });
      await anna.say(roomId, 'before you came');
      const start = await ben.sync();
      const sliding = new SlidingClient(ben);
      await sliding.sync(allRooms);
      await anna.membership('invite', roomId, ben);
      const invited = await ben.sync(start.next_batch);
      const inviteState = invited.rooms?.invite?.[roomId]?.invite_state.events ?? [];
      const name = inviteState.find(({ type }) => type === 'm.room.name');
      assert.equal(name?.content['name'], 'Far away');
      const memberEventsOfBen = inviteState.filter(
        ({ type, state_key }) => type === 'm.room.member' && state_key === ben.id,
      );
      assert.deepEqual(
        memberEventsOfBen.map(({ content }) => content['membership']),
        ['invite'],
      );
      const inSliding = (await sliding.sync(allRooms)).rooms[roomId];
      assert.equal(inSliding?.membership, 'invite');
      assert.ok(inSliding.invite_state?.some(({ content }) => content['name'] === 'Far away'));
      await b.restart();
      assert.ok((await ben.sync()).rooms?.invite?.[roomId]);

      await ben.do('POST', `/join/${enc(roomId)}`, {});
      // Responses of /sync omit the room until its members are known.
      let since = invited.next_batch;
      const syncOnce = async () => {
        const { next_batch, rooms } = await ben.sync(since, { timeout: 1_000 });
        since = next_batch;
        return rooms?.join?.[roomId];
      };
      let room = await syncOnce();
      while (room === undefined) room = await syncOnce();
      assert.equal(room.timeline.limited, true);
      assert.deepEqual(
        room.timeline.events.map(({ type, sender }) => [type, sender]),
        [['m.room.member', ben.id]],
      );
      assert.ok(room.state?.events.some(({ type }) => type === 'm.room.name'));
      const live = (await sliding.sync(allRooms)).rooms[roomId];
      assert.equal(live?.limited, true);
      assert.equal(live?.name, 'Far away');

      await anna.say(roomId, 'welcome');
      await until(async () => {
        const { next_batch, rooms } = await ben.sync(since);
        since = next_batch;
        const timeline = rooms?.join?.[roomId]?.timeline;
        if (!timeline) return false;
        assert.equal(timeline.limited, false);
        return timeline.events.some(({ content }) => content['body'] === 'welcome');
      });

      await anna.membership('ban', roomId, ben);
      await until(async () => {
        const { next_batch, rooms } = await ben.sync(since);
        since = next_batch;
        return rooms?.leave?.[roomId] !== undefined;
      });
      await sliding.sync(allRooms);
      assert.equal(sliding.rooms.get(roomId)?.membership, 'ban');
    });
  });
});
