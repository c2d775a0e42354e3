import assert from 'node:assert/strict';
import { eventually } from '../clients/eventually.ts';
import { ClientDevice, ClientIdentity } from '../support/users/client-device.ts';
import { Meeting } from './meeting.ts';
import { enc, type Json, type Someone, type Sync } from './someone.ts';

/** Has a device with identity keys, in place of what a client would keep for the user. */
async function uploadDevice(owner: Someone, more: Json = {}): Promise<ClientDevice> {
  const device = new ClientDevice(owner.id, owner.deviceId);
  await owner.do('POST', '/keys/upload', { device_keys: device.deviceKeys(), ...more });
  return device;
}

async function devicesOf(owner: Someone, viewer: Someone): Promise<Record<string, Json>> {
  const { device_keys } = await viewer.do('POST', '/keys/query', { device_keys: { [owner.id]: [] } });
  return (device_keys as Record<string, Record<string, Json>>)[owner.id] ?? {};
}

const changed = (owner: Someone) => (sync: Sync) => sync.device_lists?.changed?.includes(owner.id);
const left = (owner: Someone) => (sync: Sync) => sync.device_lists?.left?.includes(owner.id);

Meeting.of('device-lists', (meeting) => {
  /** Somebody whose keys nobody knows, and a viewer who shares a room with them. */
  async function strangers(host: Someone, name: string): Promise<{ owner: Someone; room: string }> {
    const isHere = host === meeting.here.one;
    const { here, there } = await meeting.newcomers(`${name}-${isHere ? 'there' : 'here'}`);
    const owner = isHere ? there : here;
    const room = await host.roomWith([owner]);
    await host.synced('the room', ({ rooms }) => rooms?.['join']?.[room]);
    return { owner, room };
  }

  meeting.bothWays(
    'new devices, new names and the end of devices are heard of',
    async ({ host: viewer }) => {
      const { owner } = await strangers(viewer, 'names');
      const device = await uploadDevice(owner);
      await viewer.synced('the new keys', changed(owner));
      const keys = (await devicesOf(owner, viewer))[owner.deviceId]?.['keys'] as Json;
      assert.equal(keys[`ed25519:${owner.deviceId}`], device.key.publicKey.base64);

      await owner.do('PUT', `/devices/${enc(owner.deviceId)}`, { display_name: 'Kitchen' });
      await eventually('the name of the device', async () => {
        const unsigned = (await devicesOf(owner, viewer))[owner.deviceId]?.['unsigned'] as Json | undefined;
        return unsigned?.['device_display_name'] === 'Kitchen';
      });

      await viewer.synced('the change', changed(owner));
      await owner.do('POST', '/logout');
      await eventually('the end of the device', async () => {
        return Object.keys(await devicesOf(owner, viewer)).length === 0;
      });
      await viewer.synced('the end', changed(owner));
      // Who has logged out can not say what state there is.
    },
    { endsApart: true },
  );

  meeting.bothWays('cross-signing keys are seen, and their replacement', async ({ host: viewer }) => {
    const { owner } = await strangers(viewer, 'crosses');
    await uploadDevice(owner);
    for (const identity of [new ClientIdentity(owner.id), new ClientIdentity(owner.id)]) {
      await uploadIdentity(owner, identity);
      await eventually('the keys', async () => {
        const found = await viewer.do('POST', '/keys/query', { device_keys: { [owner.id]: [] } });
        const keysIn = (kind: string) => {
          const ofOwner = (found[kind] as Record<string, Json> | undefined)?.[owner.id];
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

  meeting.bothWays(
    'one-time keys are given out once, and then the fallback key',
    async ({ host: viewer }) => {
      const { owner } = await strangers(viewer, 'claims');
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
    },
  );

  meeting.bothWays(
    'who shares no room any more is left alone',
    async ({ host: viewer }) => {
      const { owner, room } = await strangers(viewer, 'leaves');
      await uploadDevice(owner);
      await viewer.synced('the new keys', changed(owner));
      await owner.leave(room);
      await viewer.synced('the parting', left(owner));
    },
    { endsApart: true },
  );
});

/** Uploads cross-signing keys as a client does it: with the password where it is asked for. */
async function uploadIdentity(owner: Someone, identity: ClientIdentity): Promise<void> {
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
