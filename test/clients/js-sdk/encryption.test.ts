import assert from 'node:assert/strict';
import { after, before, test } from '../bounded-test.ts';
import { eventually } from '../eventually.ts';
import { type ServerUnderTest, serverUnderTest } from '../server-under-test.ts';
import { acceptInvite, createEncryptedRoom, waitForMembers } from './encrypted-room.ts';
import { EncryptedSession } from './encrypted-session.ts';
import { compareEmojis, nextVerificationRequest } from './verification.ts';

let server: ServerUnderTest;
let alice: EncryptedSession;
let bob: EncryptedSession;
const sessions: EncryptedSession[] = [];
before(async () => {
  server = await serverUnderTest();
  [alice, bob] = await Promise.all([newSession('alice'), newSession('bob')]);
});
after(async () => {
  for (const session of sessions) session.stop();
  await server?.stop();
});

function track(session: EncryptedSession): EncryptedSession {
  sessions.push(session);
  return session;
}

async function newSession(name: string): Promise<EncryptedSession> {
  return track(await EncryptedSession.withCrossSigning(server.url, name));
}

async function addDevice(session: EncryptedSession, options?: { withRecoveryKey: boolean }) {
  return track(await session.onAnotherDevice(options));
}

/** Sends a message, and checks that all readers decrypt it. @returns its event id */
async function assertDecryptedBy(
  roomId: string,
  sender: EncryptedSession,
  ...readers: EncryptedSession[]
): Promise<string> {
  const text = `${sender.deviceId} says ${Math.random()}`;
  const eventId = await sender.say(roomId, text);
  const events = await Promise.all(readers.map((reader) => reader.decrypted(roomId, eventId)));
  for (const event of events) {
    assert.equal(event.getWireType(), 'm.room.encrypted');
    assert.equal(event.getContent()['body'], text);
  }
  return eventId;
}

test('sets up cross-signing, secret storage and a key backup with the password', async () => {
  for (const { crypto } of [alice, bob]) {
    assert.equal(await crypto.isCrossSigningReady(), true);
    assert.equal(await crypto.isSecretStorageReady(), true);
    assert.equal((await crypto.getCrossSigningStatus()).privateKeysInSecretStorage, true);
    assert.ok(await crypto.getActiveSessionBackupVersion());
  }
});

test('encrypts between two users, and verifies them in the room', async () => {
  const room = await createEncryptedRoom([alice, bob]);
  await assertDecryptedBy(room, alice, bob);
  await assertDecryptedBy(room, bob, alice);
  assert.equal((await alice.crypto.getUserVerificationStatus(bob.userId)).isVerified(), false);

  const received = nextVerificationRequest(bob);
  await compareEmojis(await alice.crypto.requestVerificationDM(bob.userId, room), await received);
  for (const [viewer, viewed] of [
    [alice, bob],
    [bob, alice],
  ] as const) {
    await eventually('the verification', async () =>
      (await viewer.crypto.getUserVerificationStatus(viewed.userId)).isVerified(),
    );
    const device = await viewer.crypto.getDeviceVerificationStatus(viewed.userId, viewed.deviceId);
    assert.equal(device?.crossSigningVerified, true);
  }
  await assertDecryptedBy(room, alice, bob);
});

test('new members decrypt messages, and members who have left cannot fetch later ones', async () => {
  const room = await createEncryptedRoom([alice, bob]);
  const eventIdBeforeJoin = await assertDecryptedBy(room, alice, bob);
  const carol = await newSession('carol');
  await alice.client.invite(room, carol.userId);
  await acceptInvite(carol, room);
  await waitForMembers(room, alice, bob, carol);
  await assertDecryptedBy(room, alice, bob, carol);
  await assertDecryptedBy(room, bob, alice, carol);
  await assertDecryptedBy(room, carol, alice, bob);
  await assert.rejects(carol.client.fetchRoomEvent(room, eventIdBeforeJoin), { httpStatus: 404 });

  await carol.client.leave(room);
  await waitForMembers(room, alice, bob);
  const eventIdAfterLeave = await assertDecryptedBy(room, alice, bob);
  await assert.rejects(carol.client.fetchRoomEvent(room, eventIdAfterLeave), { httpStatus: 404 });
});

test('a new login is verified by another device of the user, and receives the secrets from that device', async () => {
  const room = await createEncryptedRoom([bob, alice]);
  const second = await addDevice(bob);
  const received = nextVerificationRequest(bob);
  await compareEmojis(await second.crypto.requestOwnUserVerification(), await received);
  await eventually('the private cross-signing keys', () => second.crypto.isCrossSigningReady());
  await eventually('the private key of the backup', () => second.crypto.getSessionBackupPrivateKey());
  await eventually('alice to trust the new device', async () => {
    const status = await alice.crypto.getDeviceVerificationStatus(bob.userId, second.deviceId);
    return status?.signedByOwner;
  });
  await second.room(room);
  await assertDecryptedBy(room, alice, bob, second);
  await assertDecryptedBy(room, second, bob, alice);
});

test('restores the key backup with the recovery key, and decrypts the history', async () => {
  const room = await createEncryptedRoom([alice, bob]);
  const history = [await assertDecryptedBy(room, alice, bob), await assertDecryptedBy(room, bob, alice)];
  await eventually('both Megolm sessions of the room in the backup', async () => {
    const keys = await alice.client.http.authedRequest<{ sessions: object }>(
      'GET' as never,
      `/room_keys/keys/${encodeURIComponent(room)}`,
      { version: (await alice.crypto.getActiveSessionBackupVersion())! },
    );
    return Object.keys(keys.sessions).length === 2;
  });

  const newDevice = await addDevice(alice, { withRecoveryKey: true });
  await newDevice.room(room);
  assert.equal(await newDevice.crypto.userHasCrossSigningKeys(), true);
  await newDevice.crypto.bootstrapCrossSigning({});
  assert.equal(await newDevice.crypto.isCrossSigningReady(), true);
  await newDevice.crypto.loadSessionBackupPrivateKeyFromSecretStorage();
  const { imported, total } = await newDevice.crypto.restoreKeyBackup();
  assert.equal(imported, total);
  assert.ok(total >= 2);
  for (const eventId of history) await newDevice.decrypted(room, eventId);
  await assertDecryptedBy(room, bob, alice, newDevice);
  await assertDecryptedBy(room, newDevice, alice, bob);
});

test('encrypts by the fallback key for an offline device without one-time keys', async () => {
  const dora = await newSession('dora');
  const room = await createEncryptedRoom([alice, dora]);
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

  const senders = [await addDevice(alice), await addDevice(alice)];
  const sentIds: string[] = [];
  for (const sender of senders) {
    await sender.waitForEncryptedRoom(room, 2);
    sentIds.push(await sender.say(room, 'are you there?'));
  }
  await dora.goOnline();
  for (const eventId of sentIds) await dora.decrypted(room, eventId);
  await eventually('new one-time keys', async () => {
    const answer = await alice.client.claimOneTimeKeys([[dora.userId, dora.deviceId]], 'signed_curve25519');
    const keys = Object.values(answer.one_time_keys[dora.userId]?.[dora.deviceId] ?? {});
    return keys.length > 0 && !keys.some((key) => 'fallback' in key);
  });
});

test('other users see that a device has logged out, and /keys/query returns no keys of it', async () => {
  const room = await createEncryptedRoom([bob, alice]);
  const leaving = await addDevice(alice);
  const devices = async () => [
    ...((await bob.crypto.getUserDeviceInfo([alice.userId])).get(alice.userId)?.keys() ?? []),
  ];
  await eventually('bob to see the device', async () => (await devices()).includes(leaving.deviceId));
  await leaving.room(room);
  await assertDecryptedBy(room, bob, alice, leaving);
  await leaving.client.logout(true);
  await eventually('bob to see its removal', async () => !(await devices()).includes(leaving.deviceId));
  await assertDecryptedBy(room, bob, alice);
  const keys = await bob.client.downloadKeysForUsers([alice.userId]);
  assert.equal(keys.device_keys[alice.userId]?.[leaving.deviceId], undefined);
});

test('shows replaced cross-signing keys to a user who had verified the old ones', async () => {
  const [eve, frank] = await Promise.all([newSession('eve'), newSession('frank')]);
  const room = await createEncryptedRoom([eve, frank]);
  await assertDecryptedBy(room, eve, frank);
  const received = nextVerificationRequest(frank);
  const request = await eve.crypto.requestDeviceVerification(frank.userId, frank.deviceId);
  await compareEmojis(request, await received);
  const status = () => eve.crypto.getUserVerificationStatus(frank.userId);
  await eventually('the verification', async () => (await status()).isVerified());
  await frank.replaceCrossSigning();
  await eventually('eve to see the new keys', async () => !(await status()).isVerified());
  assert.equal((await status()).wasCrossSigningVerified(), true);
  await eve.crypto.withdrawVerificationRequirement(frank.userId);
  await assertDecryptedBy(room, frank, eve);
  await assertDecryptedBy(room, eve, frank);
});
