import assert from 'node:assert/strict';
import { after, before, test } from '../bounded-test.ts';
import { eventually } from '../eventually.ts';
import { HearthProcess } from '../hearth-process.ts';
import { createEncryptedRoom } from './encrypted-room.ts';
import { EncryptedSession } from './encrypted-session.ts';

/** Total number of messages; the environment variable can raise it. */
const messageCount = Number(process.env['HEARTH_TEST_ENCRYPTED_MESSAGES'] ?? 150);
const userCount = 5;
/** Number of parts of the messages; each test sends one part. */
const partCount = 3;
/**
 * Number of messages that a sender encrypts with one Megolm session. The key of each session is sent to every device
 * by a to-device message.
 */
const rotation = 5;

let server: HearthProcess;
let sessions: EncryptedSession[] = [];
let roomId: string;
const sent: { readonly eventId: string; readonly text: string; readonly sender: EncryptedSession }[] = [];

before(async () => {
  server = await HearthProcess.create();
  await server.start();
  sessions = await Promise.all(
    Array.from({ length: userCount }, (_, number) =>
      EncryptedSession.withCrossSigning(server.url, `person-${number}`),
    ),
  );
  const [owner, ...guests] = sessions as [EncryptedSession, ...EncryptedSession[]];
  roomId = await createEncryptedRoom([owner, ...guests], rotation);
});
after(async () => {
  for (const session of sessions) session.stop();
  await server?.remove();
});

/**
 * Every session sends its share of `count` messages one after the other, and retries while the server is
 * down.
 */
async function sendMessages(count: number): Promise<void> {
  const pendingMessages = sessions.map(async (sender) => {
    for (let number = 0; number < count / userCount; number++) {
      const text = `${sender.userId}: ${sent.length}`;
      sent.push({ eventId: await sender.sendReliably(roomId, text), text, sender });
    }
  });
  await Promise.all(pendingMessages);
}

/** Sends messages while the server goes down and starts again. */
async function sendDuringOutage(endServer: () => Promise<unknown>): Promise<void> {
  const sentBefore = sent.length;
  const share = messageCount / partCount;
  const sending = sendMessages(share);
  await eventually('messages to be sent', () => sent.length - sentBefore >= share / 3);
  await endServer();
  assert.ok(sent.length - sentBefore < share, 'the server must have gone down while messages were sent');
  await server.start();
  await Promise.all([sending, ...sessions.map((session) => session.reconnect())]);
}

/** Checks that every session decrypts all messages, including its own, and none twice. */
async function assertAllDecrypted(): Promise<void> {
  const failures: string[] = [];
  for (const reader of sessions) {
    for (const { eventId, text } of sent) {
      const event = await reader.decrypted(roomId, eventId).catch((error: Error) => error);
      if (event instanceof Error) failures.push(event.message);
      else if (event.getContent()['body'] !== text) failures.push(`${eventId} has another text`);
    }
    const events = reader.client.getRoom(roomId)?.getLiveTimeline().getEvents() ?? [];
    const texts = events.map((event) => event.getContent()['body']).filter((body) => body !== undefined);
    assert.equal(new Set(texts).size, texts.length, 'a message arrived twice');
  }
  assert.deepEqual(failures, [], `${failures.length} of ${sent.length * userCount} could not be decrypted`);
}

test('delivers all encrypted messages between five users', async () => {
  await sendMessages(messageCount / partCount);
  await assertAllDecrypted();
});

test('delivers all encrypted messages through a restart of the server', async () => {
  await sendDuringOutage(() => server.stop());
  await assertAllDecrypted();
});

test('delivers all encrypted messages through a kill of the server', async () => {
  await sendDuringOutage(() => server.kill());
  await assertAllDecrypted();
  assert.ok(sent.length >= messageCount);
});
