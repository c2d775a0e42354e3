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
  sessions.flatMap((session, index) =>
    sessions.slice(index + 1).map((otherSession) => [session, otherSession] as const),
  );

const isVerified = async (session: EncryptedSession, otherSession: EncryptedSession) =>
  (await session.crypto.getUserVerificationStatus(otherSession.userId)).isVerified();

test('verifies all pairs of five users, in direct rooms and by to-device messages', async () => {
  for (const [number, [session, otherSession]] of pairs().entries()) {
    const received = nextVerificationRequest(otherSession);
    // Each pair verifies in a room of its own: in the room of all five, clients of other members would cancel requests.
    const sent =
      number % 2 === 0
        ? await session.crypto.requestVerificationDM(
            otherSession.userId,
            await createEncryptedRoom([session, otherSession]),
          )
        : await session.crypto.requestDeviceVerification(otherSession.userId, otherSession.deviceId);
    await compareEmojis(sent, await received);
  }
  for (const session of sessions) {
    for (const otherSession of sessions) {
      if (session === otherSession) continue;
      await eventually(`${session.userId} to trust ${otherSession.userId}`, () =>
        isVerified(session, otherSession),
      );
      const status = await session.crypto.getDeviceVerificationStatus(
        otherSession.userId,
        otherSession.deviceId,
      );
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
