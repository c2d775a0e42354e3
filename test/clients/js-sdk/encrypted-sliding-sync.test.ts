import assert from 'node:assert/strict';
import { after, before, test } from '../bounded-test.ts';
import { eventually } from '../eventually.ts';
import { HearthProcess } from '../hearth-process.ts';
import { acceptInvite, createEncryptedRoom, waitForMembers } from './encrypted-room.ts';
import { EncryptedSession } from './encrypted-session.ts';
import { compareEmojis, nextVerificationRequest } from './verification.ts';

let server: HearthProcess;
let alice: EncryptedSession;
let bob: EncryptedSession;
let carol: EncryptedSession;
const sessions: EncryptedSession[] = [];
before(async () => {
  server = await HearthProcess.create();
  await server.start();
  [alice, bob, carol] = await Promise.all([
    track(EncryptedSession.withCrossSigning(server.url, 'alice', 'sliding')),
    track(EncryptedSession.withCrossSigning(server.url, 'bob', 'sliding')),
    track(EncryptedSession.withCrossSigning(server.url, 'carol', 'classic')),
  ]);
});
after(async () => {
  for (const session of sessions) session.stop();
  await server?.remove();
});

/** Waits for a session, which is stopped after the tests. */
async function track(starting: Promise<EncryptedSession>): Promise<EncryptedSession> {
  const session = await starting;
  sessions.push(session);
  return session;
}

/** Sends an encrypted message, and checks that all readers decrypt it. */
async function assertReadBy(roomId: string, sender: EncryptedSession, ...readers: EncryptedSession[]) {
  const text = `${sender.deviceId} says ${Math.random()}`;
  const eventId = await sender.sendReliably(roomId, text);
  for (const reader of readers) {
    const event = await reader.decrypted(roomId, eventId);
    assert.equal(event.getWireType(), 'm.room.encrypted');
    assert.equal(event.getContent()['body'], text);
  }
}

test('encrypts between two clients that use sliding sync and one that uses classic sync', async () => {
  const room = await createEncryptedRoom([alice, bob, carol], 3);
  for (let round = 0; round < 5; round++) {
    await assertReadBy(room, alice, bob, carol);
    await assertReadBy(room, bob, alice, carol);
    await assertReadBy(room, carol, alice, bob);
  }
});

test('verifies a user by emoji comparison between two clients that use sliding sync', async () => {
  const received = nextVerificationRequest(bob);
  const sent = await alice.crypto.requestDeviceVerification(bob.userId, bob.deviceId);
  await compareEmojis(sent, await received);
  await eventually('the verification', async () =>
    (await alice.crypto.getUserVerificationStatus(bob.userId)).isVerified(),
  );
});

test('sends device list changes for new devices, removed devices and joining members by sliding sync', async () => {
  const room = await createEncryptedRoom([alice, bob]);
  const second = await track(bob.onAnotherDevice({ withRecoveryKey: true }));
  const devices = async () => [
    ...((await alice.crypto.getUserDeviceInfo([bob.userId])).get(bob.userId)?.keys() ?? []),
  ];
  await eventually('the new device', async () => (await devices()).includes(second.deviceId));
  await second.room(room);
  await assertReadBy(room, alice, bob, second);
  await second.client.logout(true);
  await eventually('the device to be removed', async () => !(await devices()).includes(second.deviceId));
  await alice.client.invite(room, carol.userId);
  await acceptInvite(carol, room);
  await waitForMembers(room, alice, bob, carol);
  await assertReadBy(room, alice, bob, carol);
  await assertReadBy(room, carol, alice, bob);
});

test('delivers all encrypted messages by sliding sync through a restart and a kill of the server', async () => {
  const room = await createEncryptedRoom([alice, bob], 2);
  await assertReadBy(room, alice, bob);
  const sentIds = new Map<string, string>();
  for (const endServer of [() => server.stop(), () => server.kill()]) {
    const sending = Array.from({ length: 6 }, async (_, number) => {
      const text = `${sentIds.size} ${number}`;
      sentIds.set(await (number % 2 ? alice : bob).sendReliably(room, text), text);
    });
    await endServer();
    await server.start();
    await Promise.all(sending);
  }
  for (const reader of [alice, bob]) {
    for (const [eventId, text] of sentIds) {
      assert.equal((await reader.decrypted(room, eventId, 180_000)).getContent()['body'], text);
    }
  }
});

test('makes a client that uses sliding sync upload new one-time keys when its keys are used up', async () => {
  const claim = async () => {
    const answer = await alice.client.claimOneTimeKeys([[bob.userId, bob.deviceId]], 'signed_curve25519');
    return Object.keys(answer.one_time_keys[bob.userId]?.[bob.deviceId] ?? {});
  };
  const claimed = new Set<string>();
  for (let number = 0; number < 80; number++) for (const key of await claim()) claimed.add(key);
  assert.equal(claimed.size, 80, 'more keys than a client uploads at first, and none of them twice');
});
