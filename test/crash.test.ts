import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from './clients/eventually.ts';
import { HearthProcess } from './clients/hearth-process.ts';
import { ApiClient } from './crash/api-client.ts';
import { MessageSender } from './crash/message-sender.ts';
import { SyncListener, type SyncPoint } from './crash/sync-listener.ts';
import { type Message, newMessages, wholeTimeline } from './crash/timeline.ts';

const talkerCount = 8;
const roomCount = 2;
/** When the process is killed, in milliseconds after the load began; later on a machine that is slow. */
const killTimes = [350, 600, 900];
/** Of a listener's bookmarks, how many are tried. */
const triedBookmarks = 8;

let server: HearthProcess;
let listeners: SyncListener[];
let talkers: MessageSender[];
const roomIds: string[] = [];

before(async () => {
  // Tokens are tried twice, and the second answer has to be computed as well.
  server = await HearthProcess.create({ caches: { sync_response_cache_duration: '0s' } });
  await server.start();
  const clients = await Promise.all(
    Array.from({ length: talkerCount }, (_, number) => ApiClient.register(server.url, `user-${number}`)),
  );
  const [owner, ...guests] = clients;
  for (let number = 0; number < roomCount; number++) {
    const roomId = await owner!.createRoom(guests.map(({ userId }) => userId));
    for (const guest of guests) await guest.join(roomId);
    roomIds.push(roomId);
  }
  talkers = clients.map((client) => new MessageSender(client, roomIds));
  listeners = clients.slice(0, 2).map((client) => new SyncListener(client, roomIds));
  for (const listener of listeners) await listener.sync(0);
});
after(() => server?.remove());

function acknowledged() {
  return talkers.flatMap(({ attempts: sendings }) => sendings.filter(({ eventId }) => eventId !== undefined));
}

async function timelines(): Promise<Map<string, Message[]>> {
  const { client } = listeners[0]!;
  const entries = roomIds.map(async (roomId) => [roomId, await wholeTimeline(client, roomId)] as const);
  return new Map(await Promise.all(entries));
}

/** Everybody talks and listens until the process is killed; then it is started again. */
async function crashUnderLoad(killTime: number): Promise<void> {
  const load = [
    ...talkers.map((talker) => talker.sendUntilDown()),
    ...listeners.map((listener) => listener.syncUntilDown()),
  ];
  const before = acknowledged().length;
  const isUnderWay = () => acknowledged().length > before + talkerCount;
  await sleep(killTime);
  try {
    await eventually('the load to be under way', isUnderWay);
  } finally {
    await server.kill();
    await Promise.all(load);
  }
  await server.start();
}

/** What was acknowledged is there, by its id and once in its room; nothing else has come in. */
async function assertNothingIsMissing(now: ReadonlyMap<string, readonly Message[]>): Promise<void> {
  const sendings = talkers.flatMap((talker) => talker.attempts);
  for (const [roomId, messages] of now) {
    const tried = new Set(sendings.filter((sending) => sending.roomId === roomId).map(({ text }) => text));
    const texts = messages.map(({ text }) => text);
    assert.equal(new Set(texts).size, texts.length, 'a message is there twice');
    assert.deepEqual(
      texts.filter((text) => !tried.has(text as string)),
      [],
    );
  }
  const byId = new Map([...now.values()].flat().map((message) => [message.eventId, message]));
  for (const { client, roomId, eventId, text } of acknowledged()) {
    assert.equal(byId.get(eventId!)?.text, text);
    assert.equal((await client.event(roomId, eventId!)).content['body'], text);
  }
}

/** A token brings exactly what had not been received with it, in the order of the room. */
async function assertTokenIsGood(
  { client }: SyncListener,
  { token, received }: SyncPoint,
  now: ReadonlyMap<string, readonly Message[]>,
): Promise<void> {
  const answer = await client.sync(token, 0);
  for (const [roomId, messages] of now) {
    const count = received.get(roomId) ?? 0;
    const known = new Set(messages.slice(0, count).map(({ eventId }) => eventId));
    const later = await newMessages(client, roomId, answer, (eventId) => known.has(eventId));
    assert.deepEqual(later, messages.slice(count));
  }
}

/** Some of them from first to last. */
function spread<T>(values: readonly T[], count: number): T[] {
  const step = Math.max(1, Math.floor(values.length / count));
  return values.filter((_, index) => index % step === 0 || index === values.length - 1);
}

test('kill -9 under load loses nothing that was acknowledged and breaks no token', async (context) => {
  let past = new Map<string, Message[]>();
  for (const killTime of killTimes) {
    await context.test(`killed after ${killTime} ms`, async () => {
      await crashUnderLoad(killTime);
      const now = await timelines();
      await assertNothingIsMissing(now);
      for (const roomId of roomIds) {
        const messages = now.get(roomId)!;
        assert.deepEqual(messages.slice(0, past.get(roomId)?.length ?? 0), past.get(roomId) ?? []);
        for (const listener of listeners) {
          const received = listener.received(roomId);
          assert.deepEqual(received, messages.slice(0, received.length));
        }
      }
      for (const listener of listeners) {
        for (const bookmark of spread(listener.syncPoints, triedBookmarks)) {
          await assertTokenIsGood(listener, bookmark, now);
        }
      }
      past = now;
    });
  }
});

test('after the restart, what is new reaches those who hold a token from before: no position is given out again', async () => {
  const [listener] = listeners;
  const { token, received } = listener!.latestPoint;
  const sendings = await Promise.all(talkers.map((talker) => talker.sendOne()));
  const now = await timelines();
  await assertTokenIsGood(listener!, { token, received }, now);
  const texts = [...now.values()].flat().map(({ text }) => text);
  for (const { text } of sendings) assert.ok(texts.includes(text));
});

test('a transaction id from before the crash still stands for its event', async () => {
  const [{ client, roomId, text, transactionId, eventId }] = acknowledged() as [
    Required<MessageSender['attempts'][0]>,
  ];
  assert.equal(await client.send(roomId, text, transactionId), eventId);
  const interrupted = talkers.flatMap(({ attempts: sendings }) =>
    sendings.filter((sending) => !sending.eventId),
  );
  for (const sending of interrupted) {
    const first = await sending.client.send(sending.roomId, sending.text, sending.transactionId);
    assert.equal(await sending.client.send(sending.roomId, sending.text, sending.transactionId), first);
    sending.eventId = first;
  }
  await assertNothingIsMissing(await timelines());
});

test('what is kept in memory only does not go back either: typing after the crash is seen', async () => {
  const [listener, other] = listeners;
  const roomId = roomIds[0]!;
  const typing = async (token: string, timeout: number) => {
    const answer = await listener!.client.sync(token, timeout);
    const events = answer.rooms?.join?.[roomId]?.ephemeral?.events ?? [];
    return events.filter(({ type }) => type === 'm.typing').map(({ content }) => content['user_ids']);
  };
  await listener!.sync(0);
  for (let count = 0; count < 20; count++) await other!.client.setTyping(roomId, count % 2 === 0);
  await listener!.sync(0);
  const { token } = listener!.latestPoint;
  assert.deepEqual(await typing(token, 0), []);
  await server.kill();
  await server.start();
  await other!.client.setTyping(roomId, true);
  assert.deepEqual(await typing(token, 1_000), [[other!.client.userId]]);
});
