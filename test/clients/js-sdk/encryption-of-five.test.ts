import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../eventually.ts';
import { HearthProcess } from '../hearth-process.ts';
import { allIn, encryptedRoom, join } from './encrypted-room.ts';
import { EncryptedSession } from './encrypted-session.ts';

const people = 5;
/** Messages after which a sender takes another key. */
const rotation = 3;
/** Milliseconds for what was said while the server was away. */
const patience = 180_000;

let server: HearthProcess;
/** Everybody who is in the room. */
let everybody: EncryptedSession[] = [];
let roomId: string;
const sessions: EncryptedSession[] = [];
/** What was said since the members changed last: event ids and texts. */
const said = new Map<string, string>();

before(async () => {
  server = await HearthProcess.create();
  await server.start();
  everybody = await Promise.all(
    Array.from({ length: people }, async (_, n) =>
      kept(await EncryptedSession.ofEquippedUser(server.url, `person-${n}`)),
    ),
  );
  roomId = await encryptedRoom(everybody as [EncryptedSession, ...EncryptedSession[]], rotation);
});
after(async () => {
  for (const session of sessions) session.stop();
  await server?.remove();
});

function kept(session: EncryptedSession): EncryptedSession {
  sessions.push(session);
  return session;
}

/** All of them say something at the same time, `times` times. */
async function talk(speakers: readonly EncryptedSession[], times = 2): Promise<void> {
  const talks = speakers.map(async (speaker) => {
    for (let n = 0; n < times; n++) {
      const text = `${speaker.deviceId} says ${said.size}`;
      said.set(await speaker.insist(roomId, text), text);
    }
  });
  await Promise.all(talks);
}

/** Has a client look up what its syncs have left out, as they do after it was away for more than they hold. */
async function lookUp({ client, userId }: EncryptedSession, eventId: string): Promise<void> {
  const room = client.getRoom(roomId)!;
  const look = async () => {
    if (room.findEventById(eventId)) return true;
    await client.getEventTimeline(room.getUnfilteredTimelineSet(), eventId).catch(() => sleep(100));
    return room.findEventById(eventId) !== undefined;
  };
  await eventually(`${userId} to find ${eventId}`, look, patience);
}

async function assertRead(
  listeners: readonly EncryptedSession[],
  texts: ReadonlyMap<string, string> = said,
): Promise<void> {
  for (const listener of listeners) {
    for (const [eventId, text] of texts) {
      await lookUp(listener, eventId);
      const event = await listener.read(roomId, eventId, patience);
      assert.equal(event.getWireType(), 'm.room.encrypted');
      assert.equal(event.getContent()['body'], text);
    }
  }
}

/** Lets something happen while the server goes down and comes back. */
async function through(goDown: () => Promise<unknown>, work: () => Promise<unknown>): Promise<void> {
  const working = work();
  await goDown();
  await server.start();
  await working;
  await Promise.all(everybody.map((session) => session.reconnect()));
}

/** Claims one key of a device. @returns its name, and whether it is a fallback key */
async function claim({ userId, deviceId }: EncryptedSession): Promise<{ name: string; isFallback: boolean }> {
  const answer = await everybody[0]!.client.claimOneTimeKeys([[userId, deviceId]], 'signed_curve25519');
  const [[name, key] = []] = Object.entries(answer.one_time_keys[userId]?.[deviceId] ?? {});
  assert.ok(name && key, `${userId} has no key left`);
  return { name, isFallback: 'fallback' in key };
}

test('five people who have set everything up talk through a restart and a kill', async () => {
  for (const { crypto } of everybody) {
    assert.equal(await crypto.isCrossSigningReady(), true);
    assert.equal(await crypto.isSecretStorageReady(), true);
  }
  await talk(everybody);
  await through(
    () => server.stop(),
    () => talk(everybody),
  );
  await through(
    () => server.kill(),
    () => talk(everybody),
  );
  await assertRead(everybody);
});

test('who leaves reads nothing more, and who comes does, though the server is killed in between', async () => {
  for (let change = 0; change < 2; change++) {
    const [owner, leaver, ...staying] = everybody as [
      EncryptedSession,
      EncryptedSession,
      ...EncryptedSession[],
    ];
    await leaver.client.leave(roomId);
    await allIn(roomId, owner, ...staying);
    said.clear();
    await talk([owner, ...staying], 1);
    await assertRead([owner, ...staying]);
    for (const eventId of said.keys()) {
      await assert.rejects(leaver.client.fetchRoomEvent(roomId, eventId), { httpStatus: 404 });
    }
    const newcomer = kept(await EncryptedSession.ofEquippedUser(server.url, `newcomer-${change}`));
    everybody = [owner, ...staying];
    await through(
      () => server.kill(),
      () => talk(everybody),
    );
    await assertRead(everybody);
    await owner.client.invite(roomId, newcomer.userId);
    await join(newcomer, roomId);
    everybody.push(newcomer);
    await allIn(roomId, ...everybody);
    said.clear();
    await talk(everybody);
    await assertRead(everybody);
  }
});

test('who comes back reads what is said from then on, and is read', async () => {
  const [owner, leaver, ...staying] = everybody as [
    EncryptedSession,
    EncryptedSession,
    ...EncryptedSession[],
  ];
  for (let round = 0; round < 3; round++) {
    await leaver.client.leave(roomId);
    await allIn(roomId, owner, ...staying);
    said.clear();
    await talk([owner, ...staying], 1);
    await assertRead([owner, ...staying]);
    await owner.client.invite(roomId, leaver.userId);
    await join(leaver, roomId);
    await allIn(roomId, ...everybody);
    said.clear();
    await talk(everybody);
    await assertRead(everybody);
  }
});

test('those whose one-time keys are used up are reached with fallback keys, after a kill as well', async () => {
  const [first, ...others] = everybody as [EncryptedSession, ...EncryptedSession[]];
  for (const session of others) session.goOffline();
  const claimed = new Map<EncryptedSession, Set<string>>();
  for (const session of others) {
    const names = new Set<string>();
    claimed.set(session, names);
    for (;;) {
      const { name, isFallback } = await claim(session);
      if (isFallback) break;
      assert.ok(!names.has(name), `${name} was handed out twice`);
      names.add(name);
    }
    assert.ok(names.size >= 40, `${names.size} keys`);
  }
  await server.kill();
  await server.start();
  await first.reconnect();
  for (const session of others) assert.equal((await claim(session)).isFallback, true);
  // A new device has no session with anybody, and no other key to begin one with.
  const fresh = kept(await first.onAnotherDevice({ withRecoveryKey: true }));
  await fresh.encryptedRoom(roomId, people);
  const before = new Set(said.keys());
  await talk([fresh], 2);
  const news = new Map([...said].filter(([eventId]) => !before.has(eventId)));
  for (const session of others) await session.goOnline();
  await assertRead(others, news);
  await assertRead([first], news);
  for (const session of others) {
    for (const end = performance.now() + patience; (await claim(session)).isFallback; ) {
      assert.ok(performance.now() < end, `${session.userId} uploads no keys`);
    }
  }
  await talk(everybody, 1);
  await assertRead([...everybody, fresh], new Map([...said].slice(-people)));
});

test('a new login of each of them restores the backup and reads everything', async () => {
  for (const session of everybody) {
    for (const end = performance.now() + patience; ; ) {
      const fresh = kept(await session.onAnotherDevice({ withRecoveryKey: true }));
      await fresh.room(roomId);
      assert.equal(await fresh.crypto.userHasCrossSigningKeys(), true);
      await fresh.crypto.bootstrapCrossSigning({});
      await fresh.crypto.loadSessionBackupPrivateKeyFromSecretStorage();
      const { imported, total } = await fresh.crypto.restoreKeyBackup();
      assert.equal(imported, total);
      // What was taken last may not be in the backup yet.
      const unread = await unreadable(fresh);
      if (unread.length === 0) break;
      assert.ok(performance.now() < end, `${session.userId} can not read ${unread.length}: ${unread[0]}`);
    }
  }
});

/** What of all that was said a client can not read. */
async function unreadable(session: EncryptedSession): Promise<string[]> {
  const unread: string[] = [];
  for (const [eventId, text] of said) {
    await lookUp(session, eventId);
    const event = await session.read(roomId, eventId, 2_000).catch((error: Error) => error);
    if (event instanceof Error) unread.push(event.message);
    else assert.equal(event.getContent()['body'], text);
  }
  return unread;
}
