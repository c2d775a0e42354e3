import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import type { E2eeServer } from '../../../test/support/servers/e2ee-server.ts';
import type { E2eeTables } from '../tables.ts';
import { writeDevice } from './store.ts';
import { RemoteListsFixture } from './test/remote-lists-fixture.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let server: E2eeServer;
  afterEach(() => server.stop());
  const start = async () => {
    const fixture = await RemoteListsFixture.start(open);
    ({ server } = fixture);
    return fixture;
  };
  const startSharingRoom = async () => {
    const fixture = await RemoteListsFixture.startSharingRoom(open);
    ({ server } = fixture);
    return fixture;
  };

  describe('device lists of remote users', () => {
    it('fetches the list of a user in a shared room once, and then answers queries without a request to the server', async () => {
      const { alice, bob, remoteServer, fetchesDone, setMembership, query } = await start();
      const roomId = await server.room(alice);
      await setMembership(bob.userId, roomId, 'join');
      const first = await query();
      assert.deepEqual(Object.keys(first.devices), ['D0']);
      await fetchesDone();
      assert.deepEqual(remoteServer.requests, ['query elsewhere', `devices ${bob.userId}`]);
      remoteServer.isDown = true;
      const known = await query();
      assert.deepEqual(known.devices['D0']!['unsigned'], { device_display_name: 'D0' });
      const { unsigned: _unsigned, ...keys } = known.devices['D0']!;
      assert.deepEqual(keys, bob.keys.get('D0'));
      assert.deepEqual(known.master!['keys'], bob.identity.masterKey()['keys']);
      assert.deepEqual(known.selfSigning, bob.identity.selfSigningKey());
      assert.deepEqual(known.failures, []);
      assert.deepEqual((await query(bob.userId, ['OTHER'])).devices, {});
      assert.equal(remoteServer.requests.length, 2);
    });

    it('sends a device list change after the first fetch of a list when clients have queried the server of the user before', async () => {
      const { alice, bob, changedSince, remoteServer, fetchesDone, deviceIds, lists, setMembership } =
        await start();
      const roomId = await server.room(alice);
      await setMembership(bob.userId, roomId, 'join');
      remoteServer.isDown = true;
      await lists.fetchMissing([bob.userId]);
      await fetchesDone();
      remoteServer.isDown = false;
      assert.deepEqual(await deviceIds(), ['D0']);
      const since = server.position;
      const update = bob.addDeviceUpdate();
      server.server.clock.advance(60_000);
      await fetchesDone();
      assert.deepEqual(await changedSince(since), [bob.userId]);
      const afterFetch = server.position;
      await lists.receiveUpdate('elsewhere', update);
      assert.deepEqual(await changedSince(afterFetch), []);
      remoteServer.isDown = true;
      assert.deepEqual(await deviceIds(), ['D0', 'D1']);
    });

    it('leaves out a user whose stored keys would make the response to a query too large, and names their server in failures', async () => {
      const { alice, bob, remoteServer, setMembership, fetchesDone, roomId } = await startSharingRoom();
      const mallory = remoteServer.addUser('@mallory:evil');
      await setMembership(mallory.userId, roomId, 'join');
      const device_keys = { [mallory.userId]: [], [bob.userId]: [] };
      const query = async () => (await server.call(alice, 'POST', '/keys/query', { device_keys })).body;
      assert.deepEqual((await query())['failures'], {});
      await fetchesDone();
      await server.server.database.transaction<E2eeTables, void>(async (writer) => {
        for (let device = 0; device < 600; device++)
          await writeDevice(writer, mallory.userId, `M${device}`, `{"x":"${'x'.repeat(15_000)}"}`);
      });
      const answer = await query();
      assert.deepEqual(Object.keys(answer['device_keys'] as object), [bob.userId]);
      const failures = answer['failures'] as Record<string, { errcode: string }>;
      assert.deepEqual(
        Object.entries(failures).map(([name, { errcode }]) => [name, errcode]),
        [['evil', 'M_LIMIT_EXCEEDED']],
      );
    });

    it('does not store the list of a user who shares no room', async () => {
      const { bob, remoteServer, fetchesDone, deviceIds, lists } = await start();
      assert.deepEqual(await deviceIds(), ['D0']);
      assert.deepEqual(await deviceIds(), ['D0']);
      await fetchesDone();
      assert.deepEqual(remoteServer.requests, ['query elsewhere', 'query elsewhere']);
      await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate());
      assert.equal(await server.rows('remote_device_lists'), 0);
    });

    it('deletes a list when no room is shared any more, and fetches it again when a room is shared again', async () => {
      const { alice, bob, fetchesDone, deviceIds, lists, setMembership, roomId } = await startSharingRoom();
      const other = await server.room(alice);
      await setMembership(bob.userId, other, 'join');
      await setMembership(bob.userId, roomId, 'leave');
      await lists.settled();
      assert.equal(await server.rows('remote_device_lists'), 1);
      await setMembership(bob.userId, other, 'leave');
      await lists.settled();
      assert.deepEqual(
        [await server.rows('remote_device_lists'), await server.rows('remote_devices')],
        [0, 0],
      );
      bob.addDeviceUpdate();
      await setMembership(bob.userId, other, 'join');
      assert.deepEqual(await deviceIds(), ['D0', 'D1']);
      await fetchesDone();
      await server.rooms.memberships.leave(alice.userId, other);
      await lists.settled();
      assert.equal(await server.rows('remote_device_lists'), 0);
    });

    it('deletes once a day the lists of users who share no room, which a crash can leave behind', async () => {
      const { remoteServer, deviceIds } = await startSharingRoom();
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
      assert.deepEqual(await deviceIds(), ['D0']);
      assert.deepEqual(remoteServer.requests, []);
    });

    it('fetches the list of a user who joins an encrypted room', async () => {
      const { alice, bob, remoteServer, fetchesDone, deviceIds, setMembership } = await start();
      const roomId = await server.room(alice);
      await server.rooms.engine.timeline.append(roomId, {
        type: 'm.room.encryption',
        stateKey: '',
        sender: alice.userId,
        content: { algorithm: 'm.megolm.v1.aes-sha2' },
      });
      await setMembership(bob.userId, roomId, 'join');
      await fetchesDone();
      assert.deepEqual(remoteServer.requests, [`devices ${bob.userId}`]);
      remoteServer.isDown = true;
      assert.deepEqual(await deviceIds(), ['D0']);
    });
  });
});
