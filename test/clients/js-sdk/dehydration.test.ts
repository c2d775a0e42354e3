import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CryptoEvent } from 'matrix-js-sdk/lib/crypto-api/index.js';
import { eventually } from '../eventually.ts';
import { type ServerUnderTest, serverUnderTest } from '../server-under-test.ts';
import { encryptedRoom } from './encrypted-room.ts';
import { EncryptedSession } from './encrypted-session.ts';

let server: ServerUnderTest;
let alice: EncryptedSession;
let bob: EncryptedSession;
const sessions: EncryptedSession[] = [];
before(async () => {
  server = await serverUnderTest();
  [alice, bob] = (await Promise.all(
    ['alice', 'bob'].map((name) => EncryptedSession.ofEquippedUser(server.url, name)),
  )) as [EncryptedSession, EncryptedSession];
  sessions.push(alice, bob);
});
after(async () => {
  for (const session of sessions) session.stop();
  await server?.stop();
});

const devicesOf = async (userId: string, asSeenBy: EncryptedSession) =>
  (await asSeenBy.crypto.getUserDeviceInfo([userId], true)).get(userId) ?? new Map<string, unknown>();

/** Has a new login sign itself with the keys from secret storage. */
async function trusted(session: EncryptedSession, room: string): Promise<void> {
  await session.room(room);
  assert.equal(await session.crypto.userHasCrossSigningKeys(), true);
  await session.crypto.bootstrapCrossSigning({});
}

test('what was said while nobody was logged in is read by the next login, from the dehydrated device', async () => {
  const room = await encryptedRoom([bob, alice]);
  assert.equal(await alice.crypto.isDehydrationSupported(), true);
  await alice.crypto.startDehydration();
  await eventually(
    'bob to see the dehydrated device',
    async () => (await devicesOf(alice.userId, bob)).size === 2,
  );
  const next = () => alice.onAnotherDevice({ withRecoveryKey: true });
  await alice.client.logout(true);
  await eventually('alice to be gone', async () => (await devicesOf(alice.userId, bob)).size === 1);

  const said: string[] = [];
  for (let number = 0; number < 5; number++) {
    await bob.crypto.forceDiscardSession(room);
    said.push(await bob.say(room, `while you were away, ${number}`));
  }

  const back = await next();
  sessions.push(back);
  await trusted(back, room);
  const rehydrated = new Promise<[number, number]>((resolve) => {
    back.client.on(CryptoEvent.RehydrationProgress, (keys, messages) => {
      if (keys >= said.length) resolve([keys, messages]);
    });
  });
  await back.crypto.startDehydration();
  const [keys] = await rehydrated;
  assert.equal(keys, said.length);
  for (const [number, eventId] of said.entries()) {
    const event = await back.read(room, eventId);
    assert.equal(event.getContent()['body'], `while you were away, ${number}`);
  }
});

test('the device that takes its place gathers keys in turn', async () => {
  const [, , back] = sessions as [unknown, unknown, EncryptedSession];
  const room = await encryptedRoom([bob, back]);
  const dry = [...(await devicesOf(alice.userId, bob)).keys()].filter((id) => id !== back.deviceId);
  assert.equal(dry.length, 1);
  back.goOffline();
  const eventId = await bob.say(room, 'are you there?');
  const third = await back.onAnotherDevice({ withRecoveryKey: true });
  sessions.push(third);
  await trusted(third, room);
  await third.crypto.startDehydration();
  assert.equal((await third.read(room, eventId)).getContent()['body'], 'are you there?');
});
