import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { selectedDatabases } from '../../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../../test/support/servers/server.ts';
import { SlidingClient } from '../../../../test/support/users/sliding-client.ts';
import { TestClient } from '../../../../test/support/users/test-client.ts';
import { oneList } from '../test/one-list.ts';
import { userRegistrationOn } from '../test/register-users.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`lists in sliding sync, on ${database}`, () => {
    let server: TestServer;
    before(async () => {
      server = await startTestServer({ database });
    });
    after(() => server.stop());
    const registerUsers = userRegistrationOn(() => server);

    it('returns the rooms in the window of a list, the most recent first, and counts all rooms', async () => {
      const [anna] = await registerUsers('anna');
      const rooms = [];
      for (let index = 0; index < 4; index++) rooms.push(await anna!.createRoom());
      await anna!.say(rooms[1]!, 'up');
      const client = new SlidingClient(anna!);
      const first = await client.sync(oneList({ ranges: [[0, 1]] }));
      assert.equal(first.lists['all']?.count, 4);
      assert.deepEqual(Object.keys(first.rooms), [rooms[1], rooms[3]]);
      const grown = await client.sync(
        oneList({
          ranges: [
            [0, 0],
            [2, 3],
          ],
        }),
      );
      assert.deepEqual(Object.keys(grown.rooms), [rooms[2], rooms[0]]);
      assert.deepEqual(grown.rooms[rooms[0]!]?.lists, ['all']);
      assert.deepEqual((await client.sync(oneList())).rooms, {});
    });

    it('returns all rooms for a list without a window', async () => {
      const [anna] = await registerUsers('anna');
      const roomId = await anna!.createRoom();
      const body = { lists: { all: { timeline_limit: 1, required_state: [] } } };
      assert.deepEqual(Object.keys((await new SlidingClient(anna!).sync(body)).rooms), [roomId]);
    });

    it('returns earlier changes of a room when it enters the window of a list', async () => {
      const [anna] = await registerUsers('anna');
      const older = await anna!.createRoom();
      const newer = await anna!.createRoom();
      const client = new SlidingClient(anna!);
      await client.sync(oneList());
      await anna!.setState(older, 'm.room.topic', { topic: 'changed' });
      await anna!.say(newer, 'on top');
      const narrow = await client.sync(oneList({ ranges: [[0, 0]] }));
      assert.deepEqual(Object.keys(narrow.rooms), [newer]);
      await client.sync(oneList({ ranges: [[0, 0]] }));
      await server.restart();
      const wide = await client.sync(oneList());
      assert.equal(wide.rooms[newer]?.timeline, undefined);
      assert.equal(wide.rooms[older]?.initial, undefined);
      assert.deepEqual(
        wide.rooms[older]?.timeline?.map(({ type }) => type),
        ['m.room.topic'],
      );
    });

    it('leaves out rooms that the user left before the connection began', async () => {
      const [anna] = await registerUsers('anna');
      const roomId = await anna!.createRoom();
      await anna!.leave(roomId);
      const client = new SlidingClient(anna!);
      assert.equal((await client.sync(oneList())).lists['all']?.count, 0);
    });

    it('leaves out rooms that the operator excludes, and limits the events of timelines', async () => {
      const excluded: string[] = [];
      const config = { sync: { exclude_rooms_from_sync: excluded, filter_timeline_limit: 2 } };
      const otherServer = await startTestServer({ database, config });
      try {
        const anna = await TestClient.register(otherServer, 'anna');
        const [shown, hidden] = [await anna.createRoom(), await anna.createRoom()];
        excluded.push(hidden);
        await otherServer.restart();
        const subscription = { timeline_limit: 50, required_state: [] };
        const body = { ...oneList(), room_subscriptions: { [shown]: subscription, [hidden]: subscription } };
        const { rooms, lists } = await new SlidingClient(anna).sync(body);
        assert.deepEqual(Object.keys(rooms), [shown]);
        assert.equal(rooms[shown]?.timeline?.length, 2);
        assert.equal(lists['all']?.count, 1);
      } finally {
        await otherServer.stop();
      }
    });
  });
}
