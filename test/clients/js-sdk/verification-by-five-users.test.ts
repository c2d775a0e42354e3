import assert from 'node:assert/strict';
import { after, before, test } from '../bounded-test.ts';
import { eventually } from '../eventually.ts';
import { type ServerUnderTest, serverUnderTest } from '../server-under-test.ts';
import { createEncryptedRoom } from './encrypted-room.ts';
import { EncryptedSession } from './encrypted-session.ts';
import { compareEmojis, nextVerificationRequest } from './verification.ts';

const userCount = 5;

let server: ServerUnderTest;
let sessions: EncryptedSession[] = [];
let roomId: string;
before(async () => {
  server = await serverUnderTest();
  sessions = await Promise.all(
    Array.from({ length: userCount }, (_, number) =>
      EncryptedSession.withCrossSigning(server.url, `person-${number}`),
    ),
  );
  const [owner, ...guests] = sessions as [EncryptedSession, ...EncryptedSession[]];
  roomId = await createEncryptedRoom([owner, ...guests]);
});
after(async () => {
  for (const session of sessions) session.stop();
  await server?.stop();
});

const pairs = () =>
  sessions.flatMap((one, index) => sessions.slice(index + 1).map((other) => [one, other] as const));

const isVerified = async (one: EncryptedSession, other: EncryptedSession) =>
  (await one.crypto.getUserVerificationStatus(other.userId)).isVerified();

test('verifies all pairs of five users, in direct rooms and by to-device messages', async () => {
  for (const [number, [one, other]] of pairs().entries()) {
    const received = nextVerificationRequest(other);
    // Each pair verifies in a room of its own: in the room of all five, clients of other members would cancel requests.
    const sent =
      number % 2 === 0
        ? await one.crypto.requestVerificationDM(other.userId, await createEncryptedRoom([one, other]))
        : await one.crypto.requestDeviceVerification(other.userId, other.deviceId);
    await compareEmojis(sent, await received);
  }
  for (const one of sessions) {
    for (const other of sessions) {
      if (one === other) continue;
      await eventually(`${one.userId} to trust ${other.userId}`, () => isVerified(one, other));
      const status = await one.crypto.getDeviceVerificationStatus(other.userId, other.deviceId);
      assert.equal(status?.crossSigningVerified, true);
    }
  }
});

test('decrypts messages of verified users without a warning', async () => {
  for (const sender of sessions) {
    const eventId = await sender.say(roomId, `${sender.userId} was verified`);
    for (const reader of sessions) {
      const event = await reader.decrypted(roomId, eventId);
      assert.equal(event.getContent()['body'], `${sender.userId} was verified`);
      assert.equal((await reader.crypto.getEncryptionInfoForEvent(event))?.shieldReason, null);
    }
  }
});

test('trusts a new device that a verified user has cross-signed after entering the recovery key', async () => {
  const [first, second] = sessions as [EncryptedSession, EncryptedSession];
  const newDevice = await first.onAnotherDevice({ withRecoveryKey: true });
  try {
    await newDevice.room(roomId);
    assert.equal(await newDevice.crypto.userHasCrossSigningKeys(), true);
    await newDevice.crypto.bootstrapCrossSigning({});
    await eventually('the second user to trust the new device', async () => {
      const status = await second.crypto.getDeviceVerificationStatus(first.userId, newDevice.deviceId);
      return status?.crossSigningVerified;
    });
    await eventually('the new device to trust the second user', () => isVerified(newDevice, second));
  } finally {
    newDevice.stop();
  }
});
