import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually } from '../eventually.ts';
import { type ServerUnderTest, serverUnderTest } from '../server-under-test.ts';
import { encryptedRoom } from './encrypted-room.ts';
import { EncryptedSession } from './encrypted-session.ts';
import { comparePictures, nextRequest } from './verification.ts';

const people = 5;

let server: ServerUnderTest;
let everybody: EncryptedSession[] = [];
let roomId: string;
before(async () => {
  server = await serverUnderTest();
  everybody = await Promise.all(
    Array.from({ length: people }, (_, number) =>
      EncryptedSession.ofEquippedUser(server.url, `person-${number}`),
    ),
  );
  const [owner, ...guests] = everybody as [EncryptedSession, ...EncryptedSession[]];
  roomId = await encryptedRoom([owner, ...guests]);
});
after(async () => {
  for (const session of everybody) session.stop();
  await server?.stop();
});

const pairs = () =>
  everybody.flatMap((one, index) => everybody.slice(index + 1).map((other) => [one, other] as const));

const isVerified = async (one: EncryptedSession, other: EncryptedSession) =>
  (await one.crypto.getUserVerificationStatus(other.userId)).isVerified();

test('five people verify each other pairwise, in a conversation of their own or by messages to their devices', async () => {
  for (const [number, [one, other]] of pairs().entries()) {
    const received = nextRequest(other);
    // Not in the room of all five: clients of those who look on take part in it, and cancel the next one.
    const sent =
      number % 2 === 0
        ? await one.crypto.requestVerificationDM(other.userId, await encryptedRoom([one, other]))
        : await one.crypto.requestDeviceVerification(other.userId, other.deviceId);
    await comparePictures(sent, await received);
  }
  for (const one of everybody) {
    for (const other of everybody) {
      if (one === other) continue;
      await eventually(`${one.userId} to trust ${other.userId}`, () => isVerified(one, other));
      const status = await one.crypto.getDeviceVerificationStatus(other.userId, other.deviceId);
      assert.equal(status?.crossSigningVerified, true);
    }
  }
});

test('everybody reads what each of them says, from devices that they trust', async () => {
  for (const speaker of everybody) {
    const eventId = await speaker.say(roomId, `${speaker.userId} was verified`);
    for (const listener of everybody) {
      const event = await listener.read(roomId, eventId);
      assert.equal(event.getContent()['body'], `${speaker.userId} was verified`);
      assert.equal((await listener.crypto.getEncryptionInfoForEvent(event))?.shieldReason, null);
    }
  }
});

test('trust survives a new login, which nobody has to verify again', async () => {
  const [first, second] = everybody as [EncryptedSession, EncryptedSession];
  const fresh = await first.onAnotherDevice({ withRecoveryKey: true });
  try {
    await fresh.room(roomId);
    assert.equal(await fresh.crypto.userHasCrossSigningKeys(), true);
    await fresh.crypto.bootstrapCrossSigning({});
    await eventually('the second to trust the new device', async () => {
      const status = await second.crypto.getDeviceVerificationStatus(first.userId, fresh.deviceId);
      return status?.crossSigningVerified;
    });
    await eventually('the new device to trust the second', () => isVerified(fresh, second));
  } finally {
    fresh.stop();
  }
});
