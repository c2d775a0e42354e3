import assert from 'node:assert/strict';
import { after, before, test } from '../bounded-test.ts';
import { eventually } from '../eventually.ts';
import { TwoHearths } from '../federating-hearths.ts';
import type { HearthProcess } from '../hearth-process.ts';
import { createEncryptedRoom } from './encrypted-room.ts';
import { EncryptedSession } from './encrypted-session.ts';
import { compareEmojis, nextVerificationRequest } from './verification.ts';

/** Total number of messages; the environment variable can raise it. */
const messageCount = Number(process.env['HEARTH_TEST_ENCRYPTED_MESSAGES'] ?? 120);
/**
 * Number of messages that a sender encrypts with one Megolm session. The key of each session is sent to every device
 * by a to-device message.
 */
const rotation = 5;
/** Number of parts of the messages; each test sends one part. */
const partCount = 5;
/** Maximum time in milliseconds for data to reach the other server. */
const timeout = 180_000;

let hearths: TwoHearths;
let sessions: EncryptedSession[] = [];
let roomId: string;
const sent: { readonly eventId: string; readonly text: string }[] = [];

before(async () => {
  hearths = await TwoHearths.start();
  const { first, second } = hearths;
  sessions = await Promise.all(
    [first, second, first, second].map(({ url }, number) =>
      EncryptedSession.withCrossSigning(url, `person-${number}`),
    ),
  );
  const [owner, ...guests] = sessions as [EncryptedSession, ...EncryptedSession[]];
  roomId = await createEncryptedRoom([owner, ...guests], rotation);
});
after(async () => {
  for (const session of sessions) session.stop();
  await hearths?.remove();
});

/**
 * Every session sends its share of `count` messages one after the other, and retries while a server is down.
 */
async function sendMessages(count: number): Promise<void> {
  const talks = sessions.map(async (sender) => {
    for (let number = 0; number < count / sessions.length; number++) {
      const text = `${sender.userId}: ${sent.length}`;
      sent.push({ eventId: await sender.sendReliably(roomId, text), text });
    }
  });
  await Promise.all(talks);
}

/** Sends messages while a server goes down and starts again. */
async function sendDuringOutage(server: HearthProcess, endServer: () => Promise<unknown>): Promise<void> {
  const sentBefore = sent.length;
  const share = messageCount / partCount;
  const sending = sendMessages(share);
  await eventually('messages to be sent', () => sent.length - sentBefore >= share / 3, timeout);
  await endServer();
  assert.ok(sent.length - sentBefore < share, 'the server must have gone down while messages were sent');
  await server.start();
  await Promise.all([sending, ...sessions.map((session) => session.reconnect())]);
}

/** Checks that every session decrypts all messages, including its own. */
async function assertAllDecrypted(): Promise<void> {
  const failures: string[] = [];
  for (const reader of sessions) {
    for (const { eventId, text } of sent) {
      // After the first timeout, the timeouts of later events are short, to save time.
      const maxWait = failures.length === 0 ? timeout : 1_000;
      const event = await reader
        .loadEvent(roomId, eventId, maxWait)
        .then(() => reader.decrypted(roomId, eventId, maxWait))
        .catch((error: Error) => error);
      if (event instanceof Error) failures.push(event.message);
      else if (event.getContent()['body'] !== text) failures.push(`${eventId} has another text`);
    }
  }
  const expectedCount = sent.length * sessions.length;
  assert.deepEqual(failures, [], `${failures.length} of ${expectedCount} could not be decrypted`);
}

test('delivers all encrypted messages between users of two servers', async () => {
  await sendMessages(messageCount / partCount);
  await assertAllDecrypted();
});

test('verifies users of two servers', async () => {
  const [first, second] = sessions as [EncryptedSession, EncryptedSession];
  const received = nextVerificationRequest(second);
  await compareEmojis(
    await first.crypto.requestDeviceVerification(second.userId, second.deviceId),
    await received,
  );
  for (const [viewer, viewed] of [
    [first, second],
    [second, first],
  ] as const) {
    await eventually('the verification', async () =>
      (await viewer.crypto.getUserVerificationStatus(viewed.userId)).isVerified(),
    );
    const status = await viewer.crypto.getDeviceVerificationStatus(viewed.userId, viewed.deviceId);
    assert.equal(status?.crossSigningVerified, true);
  }
});

for (const [which, serverOf] of [
  ['the first server', () => hearths.first],
  ['the second server', () => hearths.second],
] as const) {
  test(`delivers all encrypted messages through a restart of ${which}`, async () => {
    await sendDuringOutage(serverOf(), () => serverOf().stop());
    await assertAllDecrypted();
  });

  test(`delivers all encrypted messages through a kill of ${which}`, async () => {
    await sendDuringOutage(serverOf(), () => serverOf().kill());
    await assertAllDecrypted();
  });
}

test('all users can decrypt all encrypted messages of the earlier tests', async () => {
  await assertAllDecrypted();
  assert.ok(sent.length >= messageCount);
});

test('a client encrypts for a new device of a user of the other server, and learns when the device is removed', async () => {
  const [first, second] = sessions as [EncryptedSession, EncryptedSession];
  const newDevice = await second.onAnotherDevice({ withRecoveryKey: true });
  const devices = async () => [
    ...((await first.crypto.getUserDeviceInfo([second.userId])).get(second.userId)?.keys() ?? []),
  ];
  try {
    await newDevice.room(roomId);
    await eventually('the new device', async () => (await devices()).includes(newDevice.deviceId), timeout);
    const eventId = await first.say(roomId, 'welcome');
    await newDevice.decrypted(roomId, eventId, timeout);
    const answer = await newDevice.say(roomId, 'thank you');
    await first.decrypted(roomId, answer, timeout);
    await newDevice.client.logout(true);
    await eventually(
      'the device to be removed',
      async () => !(await devices()).includes(newDevice.deviceId),
      timeout,
    );
  } finally {
    newDevice.stop();
  }
});
