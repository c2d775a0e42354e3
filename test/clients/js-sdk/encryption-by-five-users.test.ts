import assert from 'node:assert/strict';
import { after, before, test } from '../bounded-test.ts';
import { HearthProcess } from '../hearth-process.ts';
import { acceptInvite, createEncryptedRoom, waitForMembers } from './encrypted-room.ts';
import { EncryptedSession } from './encrypted-session.ts';

const memberCount = 5;
/** Number of messages that a sender encrypts with one Megolm session. */
const rotation = 3;
/** Maximum time in milliseconds until messages that were sent while the server was down are decrypted. */
const timeout = 180_000;

let server: HearthProcess;
/** The sessions of the current members of the room. */
let members: EncryptedSession[] = [];
let roomId: string;
const sessions: EncryptedSession[] = [];
/** Texts of the messages since the members changed last, by event id. */
const sentTexts = new Map<string, string>();

before(async () => {
  server = await HearthProcess.create();
  await server.start();
  members = await Promise.all(
    Array.from({ length: memberCount }, async (_, n) =>
      track(await EncryptedSession.withCrossSigning(server.url, `person-${n}`)),
    ),
  );
  roomId = await createEncryptedRoom(members as [EncryptedSession, ...EncryptedSession[]], rotation);
});
after(async () => {
  for (const session of sessions) session.stop();
  await server?.remove();
});

function track(session: EncryptedSession): EncryptedSession {
  sessions.push(session);
  return session;
}

/** All senders send messages concurrently, `times` each. */
async function sendMessages(senders: readonly EncryptedSession[], times = 2): Promise<void> {
  const talks = senders.map(async (sender) => {
    for (let n = 0; n < times; n++) {
      const text = `${sender.deviceId} says ${sentTexts.size}`;
      sentTexts.set(await sender.sendReliably(roomId, text), text);
    }
  });
  await Promise.all(talks);
}

async function assertDecrypted(
  readers: readonly EncryptedSession[],
  texts: ReadonlyMap<string, string> = sentTexts,
): Promise<void> {
  for (const reader of readers) {
    for (const [eventId, text] of texts) {
      await reader.loadEvent(roomId, eventId, timeout);
      const event = await reader.decrypted(roomId, eventId, timeout);
      assert.equal(event.getWireType(), 'm.room.encrypted');
      assert.equal(event.getContent()['body'], text);
    }
  }
}

/** Runs `work` while the server goes down and starts again. */
async function duringOutage(endServer: () => Promise<unknown>, work: () => Promise<unknown>): Promise<void> {
  const working = work();
  await endServer();
  await server.start();
  await working;
  await Promise.all(members.map((session) => session.reconnect()));
}

/** Claims one key of a device. @returns its name, and whether it is a fallback key */
async function claim({ userId, deviceId }: EncryptedSession): Promise<{ name: string; isFallback: boolean }> {
  const answer = await members[0]!.client.claimOneTimeKeys([[userId, deviceId]], 'signed_curve25519');
  const [[name, key] = []] = Object.entries(answer.one_time_keys[userId]?.[deviceId] ?? {});
  assert.ok(name && key, `${userId} has no key left`);
  return { name, isFallback: 'fallback' in key };
}

test('delivers all encrypted messages of five users through a restart and a kill of the server', async () => {
  for (const { crypto } of members) {
    assert.equal(await crypto.isCrossSigningReady(), true);
    assert.equal(await crypto.isSecretStorageReady(), true);
  }
  await sendMessages(members);
  await duringOutage(
    () => server.stop(),
    () => sendMessages(members),
  );
  await duringOutage(
    () => server.kill(),
    () => sendMessages(members),
  );
  await assertDecrypted(members);
});

test('all current members decrypt messages after leaves, joins and kills of the server, and users who left cannot fetch later messages', async () => {
  for (let change = 0; change < 2; change++) {
    const [owner, leaver, ...remaining] = members as [
      EncryptedSession,
      EncryptedSession,
      ...EncryptedSession[],
    ];
    await leaver.client.leave(roomId);
    await waitForMembers(roomId, owner, ...remaining);
    sentTexts.clear();
    await sendMessages([owner, ...remaining], 1);
    await assertDecrypted([owner, ...remaining]);
    for (const eventId of sentTexts.keys()) {
      await assert.rejects(leaver.client.fetchRoomEvent(roomId, eventId), { httpStatus: 404 });
    }
    const newcomer = track(await EncryptedSession.withCrossSigning(server.url, `newcomer-${change}`));
    members = [owner, ...remaining];
    await duringOutage(
      () => server.kill(),
      () => sendMessages(members),
    );
    await assertDecrypted(members);
    await owner.client.invite(roomId, newcomer.userId);
    await acceptInvite(newcomer, roomId);
    members.push(newcomer);
    await waitForMembers(roomId, ...members);
    sentTexts.clear();
    await sendMessages(members);
    await assertDecrypted(members);
  }
});

test('encrypts again for members who left and were invited again', async () => {
  const [owner, leaver, ...remaining] = members as [
    EncryptedSession,
    EncryptedSession,
    ...EncryptedSession[],
  ];
  for (let round = 0; round < 3; round++) {
    await leaver.client.leave(roomId);
    await waitForMembers(roomId, owner, ...remaining);
    sentTexts.clear();
    await sendMessages([owner, ...remaining], 1);
    await assertDecrypted([owner, ...remaining]);
    await owner.client.invite(roomId, leaver.userId);
    await acceptInvite(leaver, roomId);
    await waitForMembers(roomId, ...members);
    sentTexts.clear();
    await sendMessages(members);
    await assertDecrypted(members);
  }
});

test('encrypts by fallback keys for devices without one-time keys, also after a kill of the server', async () => {
  const [first, ...others] = members as [EncryptedSession, ...EncryptedSession[]];
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
  // A new device has no Olm sessions, and can start one only with a fallback key.
  const newDevice = track(await first.onAnotherDevice({ withRecoveryKey: true }));
  await newDevice.waitForEncryptedRoom(roomId, memberCount);
  const earlierEventIds = new Set(sentTexts.keys());
  await sendMessages([newDevice], 2);
  const newTexts = new Map([...sentTexts].filter(([eventId]) => !earlierEventIds.has(eventId)));
  for (const session of others) await session.goOnline();
  await assertDecrypted(others, newTexts);
  await assertDecrypted([first], newTexts);
  for (const session of others) {
    for (const end = performance.now() + timeout; (await claim(session)).isFallback; ) {
      assert.ok(performance.now() < end, `${session.userId} uploads no keys`);
    }
  }
  await sendMessages(members, 1);
  await assertDecrypted([...members, newDevice], new Map([...sentTexts].slice(-memberCount)));
});

test('restores the key backup on a new device of each user, and decrypts all messages', async () => {
  for (const session of members) {
    for (const end = performance.now() + timeout; ; ) {
      const newDevice = track(await session.onAnotherDevice({ withRecoveryKey: true }));
      await newDevice.room(roomId);
      assert.equal(await newDevice.crypto.userHasCrossSigningKeys(), true);
      await newDevice.crypto.bootstrapCrossSigning({});
      await newDevice.crypto.loadSessionBackupPrivateKeyFromSecretStorage();
      const { imported, total } = await newDevice.crypto.restoreKeyBackup();
      assert.equal(imported, total);
      // The newest keys are possibly not in the backup yet.
      const failures = await decryptionFailures(newDevice);
      if (failures.length === 0) break;
      assert.ok(
        performance.now() < end,
        `${session.userId} cannot decrypt ${failures.length}: ${failures[0]}`,
      );
    }
  }
});

/** Returns an error for each message that the client cannot decrypt. */
async function decryptionFailures(session: EncryptedSession): Promise<string[]> {
  const failures: string[] = [];
  for (const [eventId, text] of sentTexts) {
    await session.loadEvent(roomId, eventId, timeout);
    const event = await session.decrypted(roomId, eventId, 2_000).catch((error: Error) => error);
    if (event instanceof Error) failures.push(event.message);
    else assert.equal(event.getContent()['body'], text);
  }
  return failures;
}
