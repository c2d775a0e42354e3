import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../../test/support/clocks/manual-clock.ts';
import { forEachDatabase } from '../../../../test/support/databases/databases.ts';
import { plainCaches } from '../../../../test/support/servers/caches.ts';
import { systemRandomness } from '../../../kernel/randomness.ts';
import { Connections } from './connections.ts';
import { slidingSyncMigrations } from './migrations.ts';
import { nothingSent, type SentRoom } from './sent-room.ts';
import type { SlidingSyncTables } from './tables.ts';

const address = { userId: '@anna:test', deviceId: 'PHONE', name: 'rooms' };
const unknownPos = { errcode: 'M_UNKNOWN_POS' };

forEachDatabase((open) => {
  const start = async () => {
    const database = await open(slidingSyncMigrations);
    const clock = manualClock();
    const caches = plainCaches(clock);
    const connections = new Connections({ caches, database, clock, randomness: systemRandomness });
    const sent = (roomNid: number, timelineLimit = 1): ReadonlyMap<number, SentRoom> =>
      new Map([[roomNid, { ...nothingSent, timeline: 'live', timelineLimit }]]);
    const reader = database.reader<SlidingSyncTables>();
    /** Returns the rows of rooms on disk, each as connection, room nid and generation. */
    const rooms = async () => {
      const rows = await reader.selectFrom('sliding_sync_rooms').selectAll().execute();
      return rows.map(({ connection, room_nid, generation }) => [connection, room_nid, generation]).sort();
    };
    return { connections, database, sent, rooms };
  };

  describe('Connections with several requests at the same time', () => {
    it('saves the newest of several requests that begin a connection at the same time, and nothing of the other requests', async () => {
      const { connections, sent, rooms } = await start();
      const requests = [1, 2, 3].map(() => connections.begin(address));
      // The oldest request is answered last.
      const saved = await Promise.all(
        requests.toReversed().map((request, index) => connections.save(request, sent(index + 1))),
      );
      assert.deepEqual(saved, [1, undefined, undefined]);
      const { id } = requests[2]!.connection;
      assert.deepEqual(await rooms(), [[id, 1, 1]]);
      const nextRequest = await connections.find(address, { connection: id, generation: 1, stream: 1 });
      assert.deepEqual([...nextRequest.connection.rooms.keys()], [1]);
    });

    it('discards an answer that is being saved when the client repeats the request, and sends the rooms of the discarded answer again', async () => {
      const { connections, sent, rooms } = await start();
      const first = connections.begin(address);
      const { id } = first.connection;
      await connections.save(first, sent(1));
      const position = { connection: id, generation: 1, stream: 1 };
      const slow = await connections.find(address, position);
      const saving = connections.save(slow, sent(2));
      // The transaction begins in a microtask.
      for (let count = 0; count < 3; count++) await undefined;
      const repeated = await connections.find(address, position);
      assert.equal(await saving, 2);
      assert.ok(slow.superseded.aborted);
      assert.deepEqual([...repeated.connection.rooms.keys()], [1]);
      assert.equal(await connections.save(slow, sent(3)), undefined);
      assert.equal(await connections.save(repeated, new Map()), 3);
      // The row of generation 3 says that room 2 was not sent, because the answer of generation 2, which contained it,
      // was discarded.
      assert.deepEqual(await rooms(), [
        [id, 1, 1],
        [id, 2, 2],
        [id, 2, 3],
      ]);
      const next = await connections.find(address, { ...position, generation: 3 });
      assert.deepEqual([...next.connection.rooms.keys()], [1]);
    });

    it('keeps apart the connections of two clients that have the same user and no device id, and supersedes no request of one client by a request of the other', async () => {
      const { connections, sent } = await start();
      const withoutDevice = { ...address, deviceId: '' };
      const requests = [1, 2].map(() => connections.begin(withoutDevice));
      for (const [index, request] of requests.entries()) await connections.save(request, sent(index + 1));
      const continued = await Promise.all(
        requests.map(({ connection: { id } }) =>
          connections.find(withoutDevice, { connection: id, generation: 1, stream: 1 }),
        ),
      );
      assert.deepEqual(
        [...requests, ...continued].map(({ superseded }) => superseded.aborted),
        [true, true, false, false],
      );
      assert.deepEqual(
        continued.map(({ connection }) => [...connection.rooms.keys()]),
        [[1], [2]],
      );
    });

    it('writes nothing and rejects with M_UNKNOWN_POS when the connection was deleted during the request', async () => {
      const { connections, database, sent, rooms } = await start();
      const first = connections.begin(address);
      const { id } = first.connection;
      await connections.save(first, sent(1));
      const position = { connection: id, generation: 1, stream: 1 };
      const late = await connections.find(address, position);
      await database.transaction<SlidingSyncTables, void>(async (writer) => {
        await writer.deleteFrom('sliding_sync_rooms').execute();
        await writer.deleteFrom('sliding_sync_connections').execute();
      });
      await assert.rejects(connections.save(late, sent(2)), unknownPos);
      assert.deepEqual(await rooms(), []);
      await assert.rejects(connections.find(address, position), unknownPos);
    });
  });
});
