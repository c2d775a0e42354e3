import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import type { E2eeServer } from '../../../test/support/servers/e2ee-server.ts';
import { ClientDevice, ClientIdentity } from '../../../test/support/users/client-device.ts';
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

  describe('updates of device lists by EDUs', () => {
    it('applies m.device_list_update EDUs without a request to the server that sent them', async () => {
      const { bob, changedSince, remoteServer, deviceIds, lists, query } = await startSharingRoom();
      const since = server.position;
      await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate());
      assert.deepEqual(await changedSince(since), [bob.userId]);
      assert.deepEqual(await deviceIds(), ['D0', 'D1']);
      await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate({ device_display_name: 'Telephone' }));
      assert.deepEqual((await query()).devices['D2']!['unsigned'], { device_display_name: 'Telephone' });
      await lists.receiveUpdate('elsewhere', bob.deleteDeviceUpdate('D1'));
      assert.deepEqual(await deviceIds(), ['D0', 'D2']);
      assert.deepEqual(remoteServer.requests, []);
    });

    it('returns as changed the user whose update follows a gap, also while the server does not answer /user/devices', async () => {
      const { bob, changedSince, remoteServer, fetchesDone, lists, query } = await startSharingRoom();
      remoteServer.isDown = true;
      let since = server.position;
      for (const changes of [{ prev_id: [77] }, { prev_id: [] }, {}]) {
        await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate(changes));
        await fetchesDone();
        assert.deepEqual(await changedSince(since), [bob.userId]);
        since = server.position;
      }
      assert.deepEqual((await query()).failures, ['elsewhere']);
      remoteServer.isDown = false;
      await lists.serverIsBack('elsewhere');
      await fetchesDone();
      assert.deepEqual(await changedSince(since), [bob.userId]);
      assert.equal(Object.keys((await query()).devices).length, 4);
    });

    it('applies an update that follows several other updates, and a repeated update once', async () => {
      const { bob, changedSince, remoteServer, fetchesDone, deviceIds, lists } = await startSharingRoom();
      const firstUpdate = bob.addDeviceUpdate();
      const secondUpdate = { ...bob.addDeviceUpdate(), prev_id: [1] };
      await lists.receiveUpdate('elsewhere', firstUpdate);
      await lists.receiveUpdate('elsewhere', secondUpdate);
      await lists.receiveUpdate('elsewhere', { ...bob.addDeviceUpdate(), prev_id: [2, 3] });
      assert.deepEqual(await deviceIds(), ['D0', 'D1', 'D2', 'D3']);
      const since = server.position;
      await lists.receiveUpdate('elsewhere', { ...firstUpdate, deleted: true });
      assert.deepEqual(await changedSince(since), []);
      await fetchesDone();
      assert.deepEqual(await deviceIds(), ['D0', 'D1', 'D2', 'D3']);
      assert.deepEqual(remoteServer.requests, []);
    });

    it('ignores updates about users who do not belong to the sending server, and updates with malformed device ids', async () => {
      const { alice, bob, changedSince, remoteServer, lists } = await startSharingRoom();
      const since = server.position;
      await lists.receiveUpdate('evil', bob.addDeviceUpdate());
      await lists.receiveUpdate('elsewhere', { ...bob.addDeviceUpdate(), user_id: alice.userId });
      await lists.receiveSigningKeys('evil', { user_id: bob.userId, master_key: bob.identity.masterKey() });
      for (const device_id of [undefined, 5, '', 'x\0y', 'x'.repeat(256)]) {
        await lists.receiveUpdate('elsewhere', { ...bob.addDeviceUpdate(), device_id } as JsonObject);
      }
      assert.deepEqual(await changedSince(since), []);
      assert.deepEqual(remoteServer.requests, []);
    });

    it('ignores keys of another user or device and keys that are too large, and removes signatures of other users', async () => {
      const { bob, remoteServer, lists, query } = await startSharingRoom();
      const eve = new ClientDevice('@eve:evil', 'D1');
      const other = new ClientDevice(bob.userId, 'OTHER');
      const large = new ClientDevice(bob.userId, 'D3').deviceKeys({ more: 'x'.repeat(20_000) });
      let deep: JsonObject = {};
      for (let depth = 0; depth < 50; depth++) deep = { deep };
      const tooDeep = new ClientDevice(bob.userId, 'D4').deviceKeys({ deep });
      bob.streamId = 1;
      for (const keys of [eve.deviceKeys(), other.deviceKeys(), large, tooDeep]) {
        await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate({ keys }));
      }
      const valid = bob.addDeviceUpdate();
      const keys = valid['keys'] as JsonObject;
      const signatures = { ...(keys.signatures as JsonObject), '@eve:evil': { 'ed25519:x': 'x' } };
      await lists.receiveUpdate('elsewhere', { ...valid, keys: { ...keys, signatures } });
      const { devices } = await query();
      assert.deepEqual(Object.keys(devices), ['D0', 'D5']);
      assert.deepEqual(Object.keys(devices['D5']!.signatures as object), [bob.userId]);
      assert.deepEqual(remoteServer.requests, []);
    });

    it('applies m.signing_key_update EDUs, and ignores keys of another user in them', async () => {
      const { bob, changedSince, lists, query } = await startSharingRoom();
      bob.identity = new ClientIdentity(bob.userId);
      const since = server.position;
      await lists.receiveSigningKeys('elsewhere', {
        user_id: bob.userId,
        master_key: bob.identity.masterKey(),
        self_signing_key: bob.identity.selfSigningKey(),
      });
      assert.deepEqual(await changedSince(since), [bob.userId]);
      const { master, selfSigning } = await query();
      assert.deepEqual(master!['keys'], bob.identity.masterKey()['keys']);
      assert.deepEqual(selfSigning!['keys'], bob.identity.selfSigningKey()['keys']);
      const eveIdentity = new ClientIdentity('@eve:evil');
      await lists.receiveSigningKeys('elsewhere', {
        user_id: bob.userId,
        master_key: eveIdentity.masterKey(),
      });
      assert.deepEqual((await query()).master, master);
    });

    it('stores at most 2,000 devices of a user', async () => {
      const { bob, remoteServer, fetchesDone, deviceIds, lists } = await startSharingRoom();
      const [device] = bob.keys.values();
      const keysOf = (n: number): JsonObject => ({ ...device, device_id: `X${n}` });
      remoteServer.devicesAnswer = (user) => ({
        ...user.deviceList(),
        devices: Array.from({ length: 6_000 }, (_, n) => ({ device_id: `X${n}`, keys: keysOf(n) })),
      });
      await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate({ prev_id: [] }));
      await fetchesDone();
      assert.equal((await deviceIds()).length, 2_000);
      await lists.receiveUpdate('elsewhere', bob.addDeviceUpdate());
      assert.equal((await deviceIds()).length, 2_000);
    });
  });
});
