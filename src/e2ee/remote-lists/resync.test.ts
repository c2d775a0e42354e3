import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import type { E2eeServer } from '../../../test/support/servers/e2ee-server.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { RemoteListsFixture } from './test/remote-lists-fixture.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let server: E2eeServer;
  afterEach(() => server.stop());
  const startSharingRoom = async () => {
    const fixture = await RemoteListsFixture.startSharingRoom(open);
    ({ server } = fixture);
    return fixture;
  };

  describe('fetches of device lists', () => {
    for (const [reason, change] of [
      ['an update was missed', { prev_id: [77] }],
      ['an update has no previous ids', { prev_id: [] }],
      ['an update lacks prev_id', { prev_id: undefined }],
      ['an update has no valid stream id', { stream_id: 'x' }],
      ['a stream id is lower than the last one', { stream_id: 0 }],
      ['an update has too many previous ids', { prev_id: Array.from({ length: 1_000 }, () => 1) }],
    ] as const) {
      it(`fetches a list again when ${reason}`, async () => {
        const { bob, changedSince, remoteServer, fetchesDone, deviceIds, lists } = await startSharingRoom();
        bob.addDevice();
        const since = server.position;
        await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate(change as JsonObject));
        assert.deepEqual(await changedSince(since), [bob.userId]);
        await fetchesDone();
        assert.deepEqual(remoteServer.requests, [`devices ${bob.userId}`]);
        assert.deepEqual(await deviceIds(), ['D0', 'D1', 'D2']);
        assert.equal(remoteServer.requests.length, 1);
        await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate());
        assert.deepEqual(await deviceIds(), ['D0', 'D1', 'D2', 'D3']);
        assert.equal(remoteServer.requests.length, 1);
      });
    }

    it('asks the server of the user while the list is stale, and sends a device list change after the fetch', async () => {
      const { bob, changedSince, remoteServer, fetchesDone, deviceIds, lists, query } =
        await startSharingRoom();
      remoteServer.isDown = true;
      bob.addDevice();
      await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate({ prev_id: [77] }));
      await server.jobs.settled();
      const whileStale = await query();
      assert.deepEqual([whileStale.hasEntry, whileStale.failures], [false, ['elsewhere']]);
      remoteServer.isDown = false;
      const since = server.position;
      assert.deepEqual(await deviceIds(), ['D0', 'D1', 'D2']);
      await lists.serverIsBack('elsewhere');
      await fetchesDone();
      assert.deepEqual(await changedSince(since), [bob.userId]);
      remoteServer.isDown = true;
      assert.deepEqual(await deviceIds(), ['D0', 'D1', 'D2']);
    });

    it('repeats a failed fetch with backoff, by a stored job', async () => {
      const { bob, remoteServer, deviceIds, lists } = await startSharingRoom();
      remoteServer.isDown = true;
      await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate({ prev_id: [77] }));
      for (let attempt = 0; attempt < 5; attempt++) {
        await server.jobs.settled();
        server.server.clock.advance(60_000);
      }
      await server.jobs.settled();
      const { length } = remoteServer.requests;
      assert.ok(length >= 3 && length <= 7, `${length} attempts`);
      const [job] = await server.jobs.list({ kind: 'e2ee/fetch-device-list' });
      assert.deepEqual([job?.key, job?.state], [bob.userId, 'waiting']);
      remoteServer.isDown = false;
      server.server.clock.advance(3_600_000);
      await server.jobs.settled();
      assert.deepEqual(await deviceIds(), ['D0', 'D1']);
    });

    it('runs one fetch of a list at a time, and at most 3 fetches for 50 updates', async () => {
      const { bob, remoteServer, fetchesDone, deviceIds, lists } = await startSharingRoom();
      let running = 0;
      let maxRunning = 0;
      let answer = () => {};
      remoteServer.devicesAnswer = async (user) => {
        maxRunning = Math.max(maxRunning, ++running);
        await new Promise<void>((resolve) => {
          answer = resolve;
        });
        running--;
        return user.deviceList();
      };
      for (let update = 0; update < 50; update++) {
        await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate({ prev_id: [7_000 + update] }));
      }
      remoteServer.devicesAnswer = undefined;
      answer();
      await fetchesDone();
      assert.equal(maxRunning, 1);
      assert.ok(remoteServer.requests.length <= 3, `${remoteServer.requests.length} requests`);
      assert.equal((await deviceIds()).length, 51);
      assert.ok(remoteServer.requests.length <= 3);
    });

    it('fetches a list again when an update arrives during its fetch', async () => {
      const { bob, remoteServer, fetchesDone, deviceIds, lists } = await startSharingRoom();
      let sendAnswer = () => {};
      remoteServer.devicesAnswer = (user) => {
        const listBefore = user.deviceList();
        return new Promise((resolve) => {
          sendAnswer = () => resolve(listBefore);
        });
      };
      await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate({ prev_id: [77] }));
      while (remoteServer.requests.length === 0) await new Promise(setImmediate);
      await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate());
      remoteServer.devicesAnswer = undefined;
      sendAnswer();
      await fetchesDone();
      assert.equal(remoteServer.requests.length, 2);
      remoteServer.isDown = true;
      assert.deepEqual(await deviceIds(), ['D0', 'D1', 'D2']);
    });

    it('repeats a fetch after a malformed response', async () => {
      const { bob, remoteServer, deviceIds, lists } = await startSharingRoom();
      for (const answer of [{}, { user_id: '@eve:evil', devices: [] }, { user_id: bob.userId, devices: 5 }]) {
        remoteServer.devicesAnswer = () => answer as JsonObject;
        await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate({ prev_id: [] }));
        await server.jobs.settled();
        server.server.clock.advance(10_000);
      }
      remoteServer.devicesAnswer = undefined;
      server.server.clock.advance(3_600_000);
      await server.jobs.settled();
      remoteServer.isDown = true;
      assert.deepEqual(await deviceIds(), ['D0', 'D1', 'D2', 'D3']);
    });

    it('fetches a device list again when a message arrives from a device that the list lacks', async () => {
      const { bob, remoteServer, fetchesDone, deviceIds, lists } = await startSharingRoom();
      await lists.fetchIfDeviceMissing(bob.userId, 'D0');
      await fetchesDone();
      assert.deepEqual(remoteServer.requests, []);
      const deviceId = bob.addDevice();
      await lists.fetchIfDeviceMissing(bob.userId, deviceId);
      await fetchesDone();
      assert.deepEqual(remoteServer.requests, [`devices ${bob.userId}`]);
      assert.deepEqual(await deviceIds(), ['D0', deviceId]);
    });
  });
});
