import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually } from '../eventually.ts';
import { HearthProcess } from '../hearth-process.ts';
import { encryptedRoom } from './encrypted-room.ts';
import { EncryptedSession } from './encrypted-session.ts';

/** How many messages are sent in all; the environment can ask for more. */
const messages = Number(process.env['HEARTH_TEST_ENCRYPTED_MESSAGES'] ?? 150);
const people = 5;
/** Messages after which a sender takes another key, which goes to every device as a message of its own. */
const rotation = 5;

let server: HearthProcess;
let everybody: EncryptedSession[] = [];
let roomId: string;
const sent: { readonly eventId: string; readonly text: string; readonly speaker: EncryptedSession }[] = [];

before(async () => {
  server = await HearthProcess.create();
  await server.start();
  everybody = await Promise.all(
    Array.from({ length: people }, (_, number) =>
      EncryptedSession.ofEquippedUser(server.url, `person-${number}`),
    ),
  );
  const [owner, ...guests] = everybody as [EncryptedSession, ...EncryptedSession[]];
  roomId = await encryptedRoom([owner, ...guests], rotation);
});
after(async () => {
  for (const session of everybody) session.stop();
  await server?.remove();
});

/** Everybody says their part of `count` messages, one after the other, also while the server is away. */
async function talk(count: number): Promise<void> {
  const talks = everybody.map(async (speaker) => {
    for (let number = 0; number < count / people; number++) {
      const text = `${speaker.userId}: ${sent.length}`;
      sent.push({ eventId: await speaker.insist(roomId, text), text, speaker });
    }
  });
  await Promise.all(talks);
}

/** Lets them talk while the server goes down and comes up again. */
async function talkThrough(goDown: () => Promise<unknown>): Promise<void> {
  const before = sent.length;
  const part = messages / 3;
  const talking = talk(part);
  await eventually('them to talk', () => sent.length - before >= part / 3);
  await goDown();
  assert.ok(sent.length - before < part, 'the server must have gone down while they talked');
  await server.start();
  await Promise.all([talking, ...everybody.map((session) => session.reconnect())]);
}

/** Everybody reads what anybody has said, themselves included, and nothing twice. */
async function assertEverythingIsRead(): Promise<void> {
  const unread: string[] = [];
  for (const listener of everybody) {
    for (const { eventId, text } of sent) {
      const event = await listener.read(roomId, eventId).catch((error: Error) => error);
      if (event instanceof Error) unread.push(event.message);
      else if (event.getContent()['body'] !== text) unread.push(`${eventId} says something else`);
    }
    const events = listener.client.getRoom(roomId)?.getLiveTimeline().getEvents() ?? [];
    const texts = events.map((event) => event.getContent()['body']).filter((body) => body !== undefined);
    assert.equal(new Set(texts).size, texts.length, 'something is there twice');
  }
  assert.deepEqual(unread, [], `${unread.length} of ${sent.length * people} could not be read`);
}

test('five people read everything that they say', async () => {
  await talk(messages / 3);
  await assertEverythingIsRead();
});

test('and with a restart of the server in between', async () => {
  await talkThrough(() => server.stop());
  await assertEverythingIsRead();
});

test('and with kill -9 in between', async () => {
  await talkThrough(() => server.kill());
  await assertEverythingIsRead();
  assert.ok(sent.length >= messages);
});
