import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../clients/eventually.ts';
import { HearthProcess } from '../clients/hearth-process.ts';
import { ApiClient } from './crash/api-client.ts';
import { MessageSender } from './crash/message-sender.ts';
import { SyncListener, type SyncPoint } from './crash/sync-listener.ts';
import { type Message, newMessages, wholeTimeline } from './crash/timeline.ts';

const senderCount = 8;
const roomCount = 2;
/**
 * Times of the kills, in milliseconds after the load began; on a slow machine a kill waits until the load is
 * under way.
 */
const killTimes = [350, 600, 900];
/** Number of sync tokens of each listener (`SyncPoint`) that are checked after a crash. */
const checkedSyncPoints = 8;
/** Number of acknowledged events that are also read by their ids after a crash. */
const checkedEvents = 200;

let server: HearthProcess;
let listeners: SyncListener[];
let senders: MessageSender[];
const roomIds: string[] = [];

before(async () => {
  // Each token is used twice. The response cache is off, so that the second response is computed, too.
  server = await HearthProcess.create({ caches: { sync_response_cache_duration: '0s' } });
  await server.start();
  const clients = await Promise.all(
    Array.from({ length: senderCount }, (_, number) => ApiClient.register(server.url, `user-${number}`)),
  );
  const [owner, ...guests] = clients;
  for (let number = 0; number < roomCount; number++) {
    const roomId = await owner!.createRoom(guests.map(({ userId }) => userId));
    for (const guest of guests) await guest.join(roomId);
    roomIds.push(roomId);
  }
  senders = clients.map((client) => new MessageSender(client, roomIds));
  listeners = clients.slice(0, 2).map((client) => new SyncListener(client, roomIds));
  for (const listener of listeners) await listener.sync(0);
});
after(() => server?.remove());

function acknowledged() {
  return senders.flatMap(({ attempts }) => attempts.filter(({ eventId }) => eventId !== undefined));
}

async function timelines(): Promise<Map<string, Message[]>> {
  const { client } = listeners[0]!;
  const entries = roomIds.map(async (roomId) => [roomId, await wholeTimeline(client, roomId)] as const);
  return new Map(await Promise.all(entries));
}

/** Kills the server while all users send and sync, and starts it again. */
async function crashUnderLoad(killTime: number): Promise<void> {
  const load = [
    ...senders.map((sender) => sender.sendUntilDown()),
    ...listeners.map((listener) => listener.syncUntilDown()),
  ];
  const countBefore = acknowledged().length;
  const isUnderWay = () => acknowledged().length > countBefore + senderCount;
  await sleep(killTime);
  try {
    await eventually('the load to be under way', isUnderWay);
  } finally {
    await server.kill();
    await Promise.all(load);
  }
  await server.start();
}

/**
 * Asserts that each acknowledged message is stored once in its room under its id, and that no message is stored that was
 * never sent.
 */
async function assertAcknowledgedAreStored(
  currentTimelines: ReadonlyMap<string, readonly Message[]>,
): Promise<void> {
  const attempts = senders.flatMap((sender) => sender.attempts);
  for (const [roomId, messages] of currentTimelines) {
    const attempted = new Set(
      attempts.filter((attempt) => attempt.roomId === roomId).map(({ text }) => text),
    );
    const texts = messages.map(({ text }) => text);
    assert.equal(new Set(texts).size, texts.length, 'a message is stored twice');
    assert.deepEqual(
      texts.filter((text) => !attempted.has(text as string)),
      [],
    );
  }
  const byId = new Map([...currentTimelines.values()].flat().map((message) => [message.eventId, message]));
  for (const { eventId, text } of acknowledged()) assert.equal(byId.get(eventId!)?.text, text);
  for (const { client, roomId, eventId, text } of evenlySpaced(acknowledged(), checkedEvents)) {
    assert.equal((await client.event(roomId, eventId!)).content['body'], text);
  }
}

/**
 * Asserts that a sync from the token returns exactly the messages that the listener lacked, in the order of
 * the room.
 */
async function assertSyncContinues(
  { client }: SyncListener,
  { token, received }: SyncPoint,
  currentTimelines: ReadonlyMap<string, readonly Message[]>,
): Promise<void> {
  const answer = await client.sync(token, 0);
  for (const [roomId, messages] of currentTimelines) {
    const count = received.get(roomId) ?? 0;
    const knownEventIds = new Set(messages.slice(0, count).map(({ eventId }) => eventId));
    const later = await newMessages(client, roomId, answer, (eventId) => knownEventIds.has(eventId));
    assert.deepEqual(later, messages.slice(count));
  }
}

/** Returns about `count` of the values, evenly spaced, the first and the last included. */
function evenlySpaced<T>(values: readonly T[], count: number): T[] {
  const step = Math.max(1, Math.floor(values.length / count));
  return values.filter((_, index) => index % step === 0 || index === values.length - 1);
}

test('the server loses no acknowledged message and invalidates no sync token when it is killed with SIGKILL under load', async (context) => {
  let previous = new Map<string, Message[]>();
  for (const killTime of killTimes) {
    await context.test(`kill after ${killTime} ms of load`, async () => {
      await crashUnderLoad(killTime);
      const currentTimelines = await timelines();
      await assertAcknowledgedAreStored(currentTimelines);
      for (const roomId of roomIds) {
        const messages = currentTimelines.get(roomId)!;
        assert.deepEqual(messages.slice(0, previous.get(roomId)?.length ?? 0), previous.get(roomId) ?? []);
        for (const listener of listeners) {
          const received = listener.received(roomId);
          assert.deepEqual(received, messages.slice(0, received.length));
        }
      }
      for (const listener of listeners) {
        for (const point of evenlySpaced(listener.syncPoints, checkedSyncPoints)) {
          await assertSyncContinues(listener, point, currentTimelines);
        }
      }
      previous = currentTimelines;
    });
  }
});

test('a sync token from before the crash returns the messages sent after it: stream positions are not reused', async () => {
  const [listener] = listeners;
  const { token, received } = listener!.latestPoint;
  const attempts = await Promise.all(senders.map((sender) => sender.sendOne()));
  const currentTimelines = await timelines();
  await assertSyncContinues(listener!, { token, received }, currentTimelines);
  const texts = [...currentTimelines.values()].flat().map(({ text }) => text);
  for (const { text } of attempts) assert.ok(texts.includes(text));
});

test('a transaction id from before the crash returns the id of the event that was sent with it', async () => {
  const [{ client, roomId, text, transactionId, eventId }] = acknowledged() as [
    Required<MessageSender['attempts'][0]>,
  ];
  assert.equal(await client.send(roomId, text, transactionId), eventId);
  const interrupted = senders.flatMap(({ attempts }) => attempts.filter((attempt) => !attempt.eventId));
  for (const attempt of interrupted) {
    const first = await attempt.client.send(attempt.roomId, attempt.text, attempt.transactionId);
    assert.equal(await attempt.client.send(attempt.roomId, attempt.text, attempt.transactionId), first);
    attempt.eventId = first;
  }
  await assertAcknowledgedAreStored(await timelines());
});

test('a typing notification after the crash reaches a client with a sync token from before the crash: positions of in-memory streams are not reused', async () => {
  const [listener, otherListener] = listeners;
  const roomId = roomIds[0]!;
  const typing = async (token: string, timeout: number) => {
    const answer = await listener!.client.sync(token, timeout);
    const events = answer.rooms?.join?.[roomId]?.ephemeral?.events ?? [];
    return events.filter(({ type }) => type === 'm.typing').map(({ content }) => content['user_ids']);
  };
  await listener!.sync(0);
  for (let count = 0; count < 20; count++) await otherListener!.client.setTyping(roomId, count % 2 === 0);
  await listener!.sync(0);
  const { token } = listener!.latestPoint;
  assert.deepEqual(await typing(token, 0), []);
  await server.kill();
  await server.start();
  await otherListener!.client.setTyping(roomId, true);
  assert.deepEqual(await typing(token, 30_000), [[otherListener!.client.userId]]);
});
