import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually } from '../eventually.ts';
import { type ServerUnderTest, serverUnderTest } from '../server-under-test.ts';
import { allIn, encryptedRoom, join } from './encrypted-room.ts';
import { EncryptedSession } from './encrypted-session.ts';
import { comparePictures, nextRequest } from './verification.ts';

let server: ServerUnderTest;
let alice: EncryptedSession;
let bob: EncryptedSession;
const sessions: EncryptedSession[] = [];
before(async () => {
  server = await serverUnderTest();
  [alice, bob] = await Promise.all([equipped('alice'), equipped('bob')]);
});
after(async () => {
  for (const session of sessions) session.stop();
  await server?.stop();
});

function kept(session: EncryptedSession): EncryptedSession {
  sessions.push(session);
  return session;
}

async function equipped(name: string): Promise<EncryptedSession> {
  return kept(await EncryptedSession.ofEquippedUser(server.url, name));
}

async function anotherDevice(of: EncryptedSession, options?: { withRecoveryKey: boolean }) {
  return kept(await of.onAnotherDevice(options));
}

/** One says something, and all the others read it. */
async function assertHeard(
  roomId: string,
  speaker: EncryptedSession,
  ...listeners: EncryptedSession[]
): Promise<string> {
  const text = `${speaker.deviceId} says ${Math.random()}`;
  const eventId = await speaker.say(roomId, text);
  const events = await Promise.all(listeners.map((listener) => listener.read(roomId, eventId)));
  for (const event of events) {
    assert.equal(event.getWireType(), 'm.room.encrypted');
    assert.equal(event.getContent()['body'], text);
  }
  return eventId;
}

test('cross-signing and secret storage are set up with the password', async () => {
  for (const { crypto } of [alice, bob]) {
    assert.equal(await crypto.isCrossSigningReady(), true);
    assert.equal(await crypto.isSecretStorageReady(), true);
    assert.equal((await crypto.getCrossSigningStatus()).privateKeysInSecretStorage, true);
    assert.ok(await crypto.getActiveSessionBackupVersion());
  }
});

test('two people talk, compare pictures in the room, and know each other from then on', async () => {
  const room = await encryptedRoom([alice, bob]);
  await assertHeard(room, alice, bob);
  await assertHeard(room, bob, alice);
  assert.equal((await alice.crypto.getUserVerificationStatus(bob.userId)).isVerified(), false);

  const received = nextRequest(bob);
  await comparePictures(await alice.crypto.requestVerificationDM(bob.userId, room), await received);
  for (const [one, other] of [
    [alice, bob],
    [bob, alice],
  ] as const) {
    await eventually('the verification', async () =>
      (await one.crypto.getUserVerificationStatus(other.userId)).isVerified(),
    );
    const device = await one.crypto.getDeviceVerificationStatus(other.userId, other.deviceId);
    assert.equal(device?.crossSigningVerified, true);
  }
  await assertHeard(room, alice, bob);
});

test('who joins reads what comes after, and who leaves reads nothing more', async () => {
  const room = await encryptedRoom([alice, bob]);
  const before = await assertHeard(room, alice, bob);
  const carol = await equipped('carol');
  await alice.client.invite(room, carol.userId);
  await join(carol, room);
  await allIn(room, alice, bob, carol);
  await assertHeard(room, alice, bob, carol);
  await assertHeard(room, bob, alice, carol);
  await assertHeard(room, carol, alice, bob);
  await assert.rejects(carol.client.fetchRoomEvent(room, before), { httpStatus: 404 });

  await carol.client.leave(room);
  await allIn(room, alice, bob);
  const after = await assertHeard(room, alice, bob);
  await assert.rejects(carol.client.fetchRoomEvent(room, after), { httpStatus: 404 });
});

test('a new login is verified by the other device and gets its secrets', async () => {
  const room = await encryptedRoom([bob, alice]);
  const second = await anotherDevice(bob);
  const received = nextRequest(bob);
  await comparePictures(await second.crypto.requestOwnUserVerification(), await received);
  await eventually('the keys of cross-signing', () => second.crypto.isCrossSigningReady());
  await eventually('the key of the backup', () => second.crypto.getSessionBackupPrivateKey());
  await eventually('alice to trust the new device', async () => {
    const status = await alice.crypto.getDeviceVerificationStatus(bob.userId, second.deviceId);
    return status?.signedByOwner;
  });
  await second.room(room);
  await assertHeard(room, alice, bob, second);
  await assertHeard(room, second, bob, alice);
});

test('a new login with the recovery key restores the backup and reads the history', async () => {
  const room = await encryptedRoom([alice, bob]);
  const history = [await assertHeard(room, alice, bob), await assertHeard(room, bob, alice)];
  await eventually('both sessions of the room in the backup', async () => {
    const keys = await alice.client.http.authedRequest<{ sessions: object }>(
      'GET' as never,
      `/room_keys/keys/${encodeURIComponent(room)}`,
      { version: (await alice.crypto.getActiveSessionBackupVersion())! },
    );
    return Object.keys(keys.sessions).length === 2;
  });

  const fresh = await anotherDevice(alice, { withRecoveryKey: true });
  await fresh.room(room);
  assert.equal(await fresh.crypto.userHasCrossSigningKeys(), true);
  await fresh.crypto.bootstrapCrossSigning({});
  assert.equal(await fresh.crypto.isCrossSigningReady(), true);
  await fresh.crypto.loadSessionBackupPrivateKeyFromSecretStorage();
  const { imported, total } = await fresh.crypto.restoreKeyBackup();
  assert.equal(imported, total);
  assert.ok(total >= 2);
  for (const eventId of history) await fresh.read(room, eventId);
  await assertHeard(room, bob, alice, fresh);
  await assertHeard(room, fresh, alice, bob);
});

test('when its one-time keys are used up, a device that is away is reached with its fallback key', async () => {
  const dora = await equipped('dora');
  const room = await encryptedRoom([alice, dora]);
  dora.goOffline();
  const claimed = new Set<string>();
  for (;;) {
    const answer = await alice.client.claimOneTimeKeys([[dora.userId, dora.deviceId]], 'signed_curve25519');
    const [[keyId, key] = []] = Object.entries(answer.one_time_keys[dora.userId]?.[dora.deviceId] ?? {});
    assert.ok(keyId && key);
    if ('fallback' in key) break;
    assert.equal(claimed.has(keyId), false, 'a one-time key was handed out twice');
    claimed.add(keyId);
  }
  assert.ok(claimed.size >= 50);

  const speakers = [await anotherDevice(alice), await anotherDevice(alice)];
  const said: string[] = [];
  for (const speaker of speakers) {
    await speaker.encryptedRoom(room, 2);
    said.push(await speaker.say(room, 'are you there?'));
  }
  await dora.goOnline();
  for (const eventId of said) await dora.read(room, eventId);
  await eventually('new one-time keys', async () => {
    const answer = await alice.client.claimOneTimeKeys([[dora.userId, dora.deviceId]], 'signed_curve25519');
    const keys = Object.values(answer.one_time_keys[dora.userId]?.[dora.deviceId] ?? {});
    return keys.length > 0 && !keys.some((key) => 'fallback' in key);
  });
});

test('a device that logs out is gone for the others', async () => {
  const room = await encryptedRoom([bob, alice]);
  const leaving = await anotherDevice(alice);
  const devices = async () => [
    ...((await bob.crypto.getUserDeviceInfo([alice.userId])).get(alice.userId)?.keys() ?? []),
  ];
  await eventually('bob to see the device', async () => (await devices()).includes(leaving.deviceId));
  await leaving.room(room);
  await assertHeard(room, bob, alice, leaving);
  await leaving.client.logout(true);
  await eventually('bob to see it gone', async () => !(await devices()).includes(leaving.deviceId));
  await assertHeard(room, bob, alice);
  const keys = await bob.client.downloadKeysForUsers([alice.userId]);
  assert.equal(keys.device_keys[alice.userId]?.[leaving.deviceId], undefined);
});

test('new cross-signing keys are seen by those who had verified the old ones', async () => {
  const [eve, frank] = await Promise.all([equipped('eve'), equipped('frank')]);
  const room = await encryptedRoom([eve, frank]);
  await assertHeard(room, eve, frank);
  const received = nextRequest(frank);
  const request = await eve.crypto.requestDeviceVerification(frank.userId, frank.deviceId);
  await comparePictures(request, await received);
  const status = () => eve.crypto.getUserVerificationStatus(frank.userId);
  await eventually('the verification', async () => (await status()).isVerified());
  await frank.replaceCrossSigning();
  await eventually('eve to see new keys', async () => !(await status()).isVerified());
  assert.equal((await status()).wasCrossSigningVerified(), true);
  await eve.crypto.withdrawVerificationRequirement(frank.userId);
  await assertHeard(room, frank, eve);
  await assertHeard(room, eve, frank);
});
