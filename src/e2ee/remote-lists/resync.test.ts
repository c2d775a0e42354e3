import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forServerDatabases } from '../../../test/support/databases/databases.ts';
import type { E2eeServer } from '../../../test/support/servers/e2ee-server.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { RemoteListsFixture } from './test/remote-lists-fixture.ts';

forServerDatabases(import.meta.url, (open) => {
  let server: E2eeServer;
  afterEach(() => server.stop());
  const startSharingRoom = async () => {
    const fixture = await RemoteListsFixture.startSharingRoom(open);
    ({ server } = fixture);
    return fixture;
  };

  describe('device lists of other servers', () => {
    for (const [what, more] of [
      ['an update was missed', { prev_id: [77] }],
      ['an update follows none', { prev_id: [] }],
      ['an update does not say what it follows', { prev_id: undefined }],
      ['an update has no id', { stream_id: 'x' }],
      ['the ids of updates go back', { stream_id: 0 }],
      ['an update follows too many', { prev_id: Array.from({ length: 1_000 }, () => 1) }],
    ] as const) {
      it(`are fetched anew when ${what}`, async () => {
        const { bob, changedSince, remoteServer, fetchesDone, deviceIds, lists } = await startSharingRoom();
        bob.addDevice();
        const mark = server.position;
        await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate(more as JsonObject));
        assert.deepEqual(await changedSince(mark), [bob.userId]);
        await fetchesDone();
        assert.deepEqual(remoteServer.asked, [`devices ${bob.userId}`]);
        assert.deepEqual(await deviceIds(), ['D0', 'D1', 'D2']);
        assert.equal(remoteServer.asked.length, 1);
        await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate());
        assert.deepEqual(await deviceIds(), ['D0', 'D1', 'D2', 'D3']);
        assert.equal(remoteServer.asked.length, 1);
      });
    }

    it('are not relied on while they are stale: the server is asked, and clients hear of it later', async () => {
      const { bob, changedSince, remoteServer, fetchesDone, deviceIds, lists, query } =
        await startSharingRoom();
      remoteServer.isDown = true;
      bob.addDevice();
      await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate({ prev_id: [77] }));
      await server.jobs.settled();
      const old = await query();
      assert.deepEqual([old.isNamed, old.failures], [false, ['elsewhere']]);
      remoteServer.isDown = false;
      const mark = server.position;
      assert.deepEqual(await deviceIds(), ['D0', 'D1', 'D2']);
      await lists.serverIsBack('elsewhere');
      await fetchesDone();
      assert.deepEqual(await changedSince(mark), [bob.userId]);
      remoteServer.isDown = true;
      assert.deepEqual(await deviceIds(), ['D0', 'D1', 'D2']);
    });

    it('are fetched again and again until it succeeds, also after a restart', async () => {
      const { bob, remoteServer, deviceIds, lists } = await startSharingRoom();
      remoteServer.isDown = true;
      await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate({ prev_id: [77] }));
      for (let attempt = 0; attempt < 5; attempt++) {
        await server.jobs.settled();
        server.server.clock.advance(60_000);
      }
      await server.jobs.settled();
      const { length } = remoteServer.asked;
      assert.ok(length >= 3 && length <= 7, `${length} attempts`);
      const [job] = await server.jobs.list({ kind: 'e2ee/fetch-device-list' });
      assert.deepEqual([job?.key, job?.state], [bob.userId, 'waiting']);
      remoteServer.isDown = false;
      server.server.clock.advance(3_600_000);
      await server.jobs.settled();
      assert.deepEqual(await deviceIds(), ['D0', 'D1']);
    });

    it('are fetched one after the other, however many updates there are meanwhile', async () => {
      const { bob, remoteServer, fetchesDone, deviceIds, lists } = await startSharingRoom();
      let open = 0;
      let most = 0;
      let go = () => {};
      remoteServer.devicesAnswer = async (user) => {
        most = Math.max(most, ++open);
        await new Promise<void>((resolve) => {
          go = resolve;
        });
        open--;
        return user.deviceList();
      };
      for (let flood = 0; flood < 50; flood++) {
        await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate({ prev_id: [7_000 + flood] }));
      }
      remoteServer.devicesAnswer = undefined;
      go();
      await fetchesDone();
      assert.equal(most, 1);
      assert.ok(remoteServer.asked.length <= 3, `${remoteServer.asked.length} questions`);
      assert.equal((await deviceIds()).length, 51);
      assert.ok(remoteServer.asked.length <= 3);
    });

    it('that were asked for before the last update are not taken for current', async () => {
      const { bob, remoteServer, fetchesDone, deviceIds, lists } = await startSharingRoom();
      let answered = () => {};
      remoteServer.devicesAnswer = (user) => {
        const before = user.deviceList();
        return new Promise((resolve) => {
          answered = () => resolve(before);
        });
      };
      await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate({ prev_id: [77] }));
      while (remoteServer.asked.length === 0) await new Promise(setImmediate);
      await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate());
      remoteServer.devicesAnswer = undefined;
      answered();
      await fetchesDone();
      assert.equal(remoteServer.asked.length, 2);
      remoteServer.isDown = true;
      assert.deepEqual(await deviceIds(), ['D0', 'D1', 'D2']);
    });

    it('are asked for again when the answer makes no sense', async () => {
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

    it('are fetched anew when a device shows itself that they do not have', async () => {
      const { bob, remoteServer, fetchesDone, deviceIds, lists } = await startSharingRoom();
      await lists.fetchIfDeviceMissing(bob.userId, 'D0');
      await fetchesDone();
      assert.deepEqual(remoteServer.asked, []);
      const deviceId = bob.addDevice();
      await lists.fetchIfDeviceMissing(bob.userId, deviceId);
      await fetchesDone();
      assert.deepEqual(remoteServer.asked, [`devices ${bob.userId}`]);
      assert.deepEqual(await deviceIds(), ['D0', deviceId]);
    });
  });
});
