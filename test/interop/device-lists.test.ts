import assert from 'node:assert/strict';
import { eventually } from '../clients/eventually.ts';
import { ClientDevice, ClientIdentity } from '../support/users/client-device.ts';
import { InteropSuite } from './interop-suite.ts';
import { enc, type InteropUser, type Json, type Sync } from './interop-user.ts';

/** Uploads identity keys of a device, as a client would. */
async function uploadDevice(owner: InteropUser, more: Json = {}): Promise<ClientDevice> {
  const device = new ClientDevice(owner.id, owner.deviceId);
  await owner.do('POST', '/keys/upload', { device_keys: device.deviceKeys(), ...more });
  return device;
}

async function devicesOf(owner: InteropUser, viewer: InteropUser): Promise<Record<string, Json>> {
  const { device_keys } = await viewer.do('POST', '/keys/query', { device_keys: { [owner.id]: [] } });
  return (device_keys as Record<string, Record<string, Json>>)[owner.id] ?? {};
}

const changed = (owner: InteropUser) => (sync: Sync) => sync.device_lists?.changed?.includes(owner.id);
const hasLeft = (owner: InteropUser) => (sync: Sync) => sync.device_lists?.left?.includes(owner.id);

InteropSuite.onSharedServers('device-lists', (suite) => {
  /**
   * Registers a user without keys on the server that is not the viewer's, and returns a room that the viewer shares with this user.
   */
  async function registerOwner(
    viewer: InteropUser,
    name: string,
  ): Promise<{ owner: InteropUser; room: string }> {
    const isViewerOnHearth = viewer === suite.onHearth.first;
    const { onHearth: hearthUser, onReference: referenceUser } = await suite.registerPair(
      `${name}-${isViewerOnHearth ? 'there' : 'here'}`,
    );
    const owner = isViewerOnHearth ? referenceUser : hearthUser;
    const room = await viewer.createRoomWith([owner]);
    await viewer.syncUntil('the room', ({ rooms }) => rooms?.['join']?.[room]);
    return { owner, room };
  }

  suite.bothWays(
    'sends device list updates for new, renamed and removed devices',
    async ({ host: viewer }) => {
      const { owner } = await registerOwner(viewer, 'names');
      const device = await uploadDevice(owner);
      await viewer.syncUntil('the new keys', changed(owner));
      const keys = (await devicesOf(owner, viewer))[owner.deviceId]?.['keys'] as Json;
      assert.equal(keys[`ed25519:${owner.deviceId}`], device.key.publicKey.base64);

      await owner.do('PUT', `/devices/${enc(owner.deviceId)}`, { display_name: 'Kitchen' });
      await eventually('the display name of the device', async () => {
        const unsigned = (await devicesOf(owner, viewer))[owner.deviceId]?.['unsigned'] as Json | undefined;
        return unsigned?.['device_display_name'] === 'Kitchen';
      });

      await viewer.syncUntil('the change', changed(owner));
      await owner.do('POST', '/logout');
      await eventually('the removal of the device', async () => {
        return Object.keys(await devicesOf(owner, viewer)).length === 0;
      });
      await viewer.syncUntil('the removal', changed(owner));
      // A user who has logged out cannot read the room state, so it is not compared.
    },
    { endsWithoutSharedRoom: true },
  );

  suite.bothWays('sends cross-signing keys and their replacement', async ({ host: viewer }) => {
    const { owner } = await registerOwner(viewer, 'crosses');
    await uploadDevice(owner);
    for (const identity of [new ClientIdentity(owner.id), new ClientIdentity(owner.id)]) {
      await uploadIdentity(owner, identity);
      await eventually('the keys', async () => {
        const queryResponse = await viewer.do('POST', '/keys/query', { device_keys: { [owner.id]: [] } });
        const keysIn = (kind: string) => {
          const ofOwner = (queryResponse[kind] as Record<string, Json> | undefined)?.[owner.id];
          return Object.keys((ofOwner?.['keys'] as Json | undefined) ?? {}).join();
        };
        return (
          keysIn('master_keys') === identity.master.keyId &&
          keysIn('self_signing_keys') === identity.selfSigning.keyId &&
          keysIn('user_signing_keys') === ''
        );
      });
    }
  });

  suite.bothWays('returns each one-time key once, and then the fallback key', async ({ host: viewer }) => {
    const { owner } = await registerOwner(viewer, 'claims');
    const keys = new ClientDevice(owner.id, owner.deviceId);
    await owner.do('POST', '/keys/upload', {
      device_keys: keys.deviceKeys(),
      one_time_keys: keys.oneTimeKeys(2),
      fallback_keys: keys.oneTimeKeys(1, 2, { fallback: true }),
    });
    const claim = async () => {
      const one_time_keys = { [owner.id]: { [owner.deviceId]: 'signed_curve25519' } };
      const answer = await viewer.do('POST', '/keys/claim', { one_time_keys });
      const claimed = (answer['one_time_keys'] as Record<string, Record<string, Json>>)[owner.id];
      return Object.keys(claimed?.[owner.deviceId] ?? {})[0];
    };
    const names = [await claim(), await claim()].sort();
    assert.deepEqual(names, ['signed_curve25519:K0', 'signed_curve25519:K1']);
    assert.deepEqual([await claim(), await claim()], Array(2).fill('signed_curve25519:K2'));
  });

  suite.bothWays(
    'reports a user in device_lists.left when the last shared room is left',
    async ({ host: viewer }) => {
      const { owner, room } = await registerOwner(viewer, 'leaves');
      await uploadDevice(owner);
      await viewer.syncUntil('the new keys', changed(owner));
      await owner.leave(room);
      await viewer.syncUntil('the leave', hasLeft(owner));
    },
    { endsWithoutSharedRoom: true },
  );
});

/** Uploads cross-signing keys; repeats the request with the password when the server requires it. */
async function uploadIdentity(owner: InteropUser, identity: ClientIdentity): Promise<void> {
  const path = '/keys/device_signing/upload';
  const first = await owner.call('POST', path, identity.keys());
  if (first.status === 200) return;
  assert.equal(first.status, 401, JSON.stringify(first.body));
  const auth = {
    type: 'm.login.password',
    session: first.body['session'],
    identifier: { type: 'm.id.user', user: owner.id },
    password: 'a password',
  };
  await owner.do('POST', path, { ...identity.keys(), auth });
}
