import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forServerDatabases } from '../../../test/support/databases/databases.ts';
import type { E2eeServer } from '../../../test/support/servers/e2ee-server.ts';
import { DistantLists } from './test/distant-lists.ts';

forServerDatabases(import.meta.url, (open) => {
  let server: E2eeServer;
  afterEach(() => server.stop());
  const start = async () => {
    const play = await DistantLists.start(open);
    ({ server } = play);
    return play;
  };
  const acquainted = async () => {
    const play = await DistantLists.acquainted(open);
    ({ server } = play);
    return play;
  };

  describe('device lists of other servers', () => {
    it('are asked for once, and then known here, also when the server is gone', async () => {
      const { alice, bob, distant, fetched, member, query } = await start();
      const roomId = await server.room(alice);
      await member(bob.userId, roomId, 'join');
      const first = await query();
      assert.deepEqual(Object.keys(first.devices), ['D0']);
      await fetched();
      assert.deepEqual(distant.asked, ['query elsewhere', `devices ${bob.userId}`]);
      distant.isDown = true;
      const known = await query();
      assert.deepEqual(known.devices['D0']!['unsigned'], { device_display_name: 'D0' });
      const { unsigned: _unsigned, ...keys } = known.devices['D0']!;
      assert.deepEqual(keys, bob.keys.get('D0'));
      assert.deepEqual(known.master!['keys'], bob.identity.masterKey()['keys']);
      assert.deepEqual(known.selfSigning, bob.identity.selfSigningKey());
      assert.deepEqual(known.failures, []);
      assert.deepEqual((await query(bob.userId, ['OTHER'])).devices, {});
      assert.equal(distant.asked.length, 2);
    });

    it('are asked for again by clients who were told something else before they were here', async () => {
      const { alice, bob, changedSince, distant, fetched, idsOf, lists, member } = await start();
      const roomId = await server.room(alice);
      await member(bob.userId, roomId, 'join');
      distant.isDown = true;
      await lists.want([bob.userId]);
      await fetched();
      distant.isDown = false;
      assert.deepEqual(await idsOf(), ['D0']);
      const mark = server.position;
      const update = bob.addDeviceUpdate();
      server.server.clock.advance(60_000);
      await fetched();
      await lists.takeUpdate('elsewhere', update);
      assert.deepEqual(await changedSince(mark), [bob.userId]);
      distant.isDown = true;
      assert.deepEqual(await idsOf(), ['D0', 'D1']);
    });

    it('are not kept of users who share no room', async () => {
      const { bob, distant, fetched, idsOf, lists } = await start();
      assert.deepEqual(await idsOf(), ['D0']);
      assert.deepEqual(await idsOf(), ['D0']);
      await fetched();
      assert.deepEqual(distant.asked, ['query elsewhere', 'query elsewhere']);
      await lists.takeUpdate('elsewhere', bob.addDeviceUpdate());
      assert.equal(await server.rows('remote_device_lists'), 0);
    });

    it('are dropped when the last room that is shared is left, and fetched anew after that', async () => {
      const { alice, bob, fetched, idsOf, lists, member, roomId } = await acquainted();
      const other = await server.room(alice);
      await member(bob.userId, other, 'join');
      await member(bob.userId, roomId, 'leave');
      await lists.settled();
      assert.equal(await server.rows('remote_device_lists'), 1);
      await member(bob.userId, other, 'leave');
      await lists.settled();
      assert.deepEqual(
        [await server.rows('remote_device_lists'), await server.rows('remote_devices')],
        [0, 0],
      );
      bob.addDeviceUpdate();
      await member(bob.userId, other, 'join');
      assert.deepEqual(await idsOf(), ['D0', 'D1']);
      await fetched();
      await server.rooms.memberships.leave(alice.userId, other);
      await lists.settled();
      assert.equal(await server.rows('remote_device_lists'), 0);
    });

    it('of users who are gone are looked for once a day, should a crash have left them behind', async () => {
      const { distant, idsOf } = await acquainted();
      const { database } = server.server;
      await database.transaction<{ remote_device_lists: Record<string, unknown> }, unknown>((writer) =>
        writer
          .insertInto('remote_device_lists')
          .values({ user_id: '@gone:far', server: 'far', stream_ids: '[]', stale: 0, revision: 1 })
          .execute(),
      );
      server.server.clock.advance(86_400_000);
      await server.jobs.settled();
      assert.equal(await server.rows('remote_device_lists'), 1);
      assert.deepEqual(await idsOf(), ['D0']);
      assert.deepEqual(distant.asked, []);
    });

    it('of those who come into an encrypted room are fetched before anybody asks', async () => {
      const { alice, bob, distant, fetched, idsOf, member } = await start();
      const roomId = await server.room(alice);
      await server.rooms.engine.timeline.append(roomId, {
        type: 'm.room.encryption',
        stateKey: '',
        sender: alice.userId,
        content: { algorithm: 'm.megolm.v1.aes-sha2' },
      });
      await member(bob.userId, roomId, 'join');
      await fetched();
      assert.deepEqual(distant.asked, [`devices ${bob.userId}`]);
      distant.isDown = true;
      assert.deepEqual(await idsOf(), ['D0']);
    });
  });
});
