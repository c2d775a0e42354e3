import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../eventually.ts';
import type { HearthProcess } from '../hearth-process.ts';
import { TwoHearths } from '../two-hearths.ts';
import { encryptedRoom } from './encrypted-room.ts';
import { EncryptedSession } from './encrypted-session.ts';
import { comparePictures, nextRequest } from './verification.ts';

/** How many messages are sent in all; the environment can ask for more. */
const messages = Number(process.env['HEARTH_TEST_ENCRYPTED_MESSAGES'] ?? 120);
/** Messages after which a sender takes another key, which goes to every device as a message of its own. */
const rotation = 5;
/** Of the messages, each test has people say one. */
const parts = 5;
/** Milliseconds for what goes from server to server. */
const patience = 180_000;
/** Milliseconds between two attempts to find an event. */
const retryDelay = 500;

let hearths: TwoHearths;
let everybody: EncryptedSession[] = [];
let roomId: string;
const sent: { readonly eventId: string; readonly text: string }[] = [];

before(async () => {
  hearths = await TwoHearths.start();
  const { one, other } = hearths;
  everybody = await Promise.all(
    [one, other, one, other].map(({ url }, number) =>
      EncryptedSession.ofEquippedUser(url, `person-${number}`),
    ),
  );
  const [owner, ...guests] = everybody as [EncryptedSession, ...EncryptedSession[]];
  roomId = await encryptedRoom([owner, ...guests], rotation);
});
after(async () => {
  for (const session of everybody) session.stop();
  await hearths?.remove();
});

/** Everybody says their part of `count` messages, one after the other, also while a server is away. */
async function talk(count: number): Promise<void> {
  const talks = everybody.map(async (speaker) => {
    for (let number = 0; number < count / everybody.length; number++) {
      const text = `${speaker.userId}: ${sent.length}`;
      sent.push({ eventId: await speaker.insist(roomId, text), text });
    }
  });
  await Promise.all(talks);
}

/** Lets them talk while a server goes down and comes up again. */
async function talkThrough(server: HearthProcess, goDown: () => Promise<unknown>): Promise<void> {
  const before = sent.length;
  const part = messages / parts;
  const talking = talk(part);
  await eventually('them to talk', () => sent.length - before >= part / 3, patience);
  await goDown();
  assert.ok(sent.length - before < part, 'the server must have gone down while they talked');
  await server.start();
  await Promise.all([talking, ...everybody.map((session) => session.reconnect())]);
}

/** Has a client look up what its syncs have left out, as they do after it was away for more than they hold. */
async function lookUp({ client, userId }: EncryptedSession, eventId: string, wait: number): Promise<void> {
  const room = client.getRoom(roomId)!;
  await eventually(
    `${userId} to find ${eventId}`,
    async () => {
      if (room.findEventById(eventId)) return true;
      await client.getEventTimeline(room.getUnfilteredTimelineSet(), eventId).catch(() => sleep(retryDelay));
      return room.findEventById(eventId) !== undefined;
    },
    wait,
  );
}

/** Everybody reads what anybody has said, themselves included. */
async function assertEverythingIsRead(): Promise<void> {
  const unread: string[] = [];
  for (const listener of everybody) {
    for (const { eventId, text } of sent) {
      // Who waited in vain once does not wait as long for each of the others.
      const wait = unread.length === 0 ? patience : 1_000;
      const event = await lookUp(listener, eventId, wait)
        .then(() => listener.read(roomId, eventId, wait))
        .catch((error: Error) => error);
      if (event instanceof Error) unread.push(event.message);
      else if (event.getContent()['body'] !== text) unread.push(`${eventId} says something else`);
    }
  }
  const all = sent.length * everybody.length;
  assert.deepEqual(unread, [], `${unread.length} of ${all} could not be read`);
}

test('people on two servers read everything that they say', async () => {
  await talk(messages / parts);
  await assertEverythingIsRead();
});

test('they verify each other', async () => {
  const [one, other] = everybody as [EncryptedSession, EncryptedSession];
  const received = nextRequest(other);
  await comparePictures(
    await one.crypto.requestDeviceVerification(other.userId, other.deviceId),
    await received,
  );
  for (const [viewer, viewed] of [
    [one, other],
    [other, one],
  ] as const) {
    await eventually('the verification', async () =>
      (await viewer.crypto.getUserVerificationStatus(viewed.userId)).isVerified(),
    );
    const status = await viewer.crypto.getDeviceVerificationStatus(viewed.userId, viewed.deviceId);
    assert.equal(status?.crossSigningVerified, true);
  }
});

for (const [which, serverOf] of [
  ['one', () => hearths.one],
  ['the other', () => hearths.other],
] as const) {
  test(`with a restart of ${which} in between`, async () => {
    await talkThrough(serverOf(), () => serverOf().stop());
    await assertEverythingIsRead();
  });

  test(`with kill -9 of ${which} in between`, async () => {
    await talkThrough(serverOf(), () => serverOf().kill());
    await assertEverythingIsRead();
  });
}

test('none of all these messages was left out', async () => {
  await assertEverythingIsRead();
  assert.ok(sent.length >= messages);
});

test('a new login on one server is written to from the other, and one that is gone is not', async () => {
  const [one, other] = everybody as [EncryptedSession, EncryptedSession];
  const fresh = await other.onAnotherDevice({ withRecoveryKey: true });
  const devices = async () => [
    ...((await one.crypto.getUserDeviceInfo([other.userId])).get(other.userId)?.keys() ?? []),
  ];
  try {
    await fresh.room(roomId);
    await eventually('the new device', async () => (await devices()).includes(fresh.deviceId), patience);
    const eventId = await one.say(roomId, 'welcome');
    await fresh.read(roomId, eventId, patience);
    const answer = await fresh.say(roomId, 'thank you');
    await one.read(roomId, answer, patience);
    await fresh.client.logout(true);
    await eventually('it to be gone', async () => !(await devices()).includes(fresh.deviceId), patience);
  } finally {
    fresh.stop();
  }
});
