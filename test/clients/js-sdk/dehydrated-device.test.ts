import assert from 'node:assert/strict';
import { CryptoEvent } from 'matrix-js-sdk/lib/crypto-api/index.js';
import { after, before, test } from '../bounded-test.ts';
import { eventually, within } from '../eventually.ts';
import { type ServerUnderTest, serverUnderTest } from '../server-under-test.ts';
import { createEncryptedRoom } from './encrypted-room.ts';
import { EncryptedSession } from './encrypted-session.ts';

let server: ServerUnderTest;
let alice: EncryptedSession;
let bob: EncryptedSession;
const sessions: EncryptedSession[] = [];
before(async () => {
  server = await serverUnderTest();
  [alice, bob] = (await Promise.all(
    ['alice', 'bob'].map((name) => EncryptedSession.withCrossSigning(server.url, name)),
  )) as [EncryptedSession, EncryptedSession];
  sessions.push(alice, bob);
});
after(async () => {
  for (const session of sessions) session.stop();
  await server?.stop();
});

const devicesOf = async (userId: string, viewer: EncryptedSession) =>
  (await viewer.crypto.getUserDeviceInfo([userId], true)).get(userId) ?? new Map<string, unknown>();

/** Makes a new login sign its device with the keys from secret storage. */
async function crossSign(session: EncryptedSession, room: string): Promise<void> {
  await session.room(room);
  assert.equal(await session.crypto.userHasCrossSigningKeys(), true);
  await session.crypto.bootstrapCrossSigning({});
}

test('decrypts messages that were sent while the user was logged out, through a dehydrated device', async () => {
  const room = await createEncryptedRoom([bob, alice]);
  assert.equal(await alice.crypto.isDehydrationSupported(), true);
  await alice.crypto.startDehydration();
  await eventually(
    'bob to see the dehydrated device',
    async () => (await devicesOf(alice.userId, bob)).size === 2,
  );
  await alice.client.logout(true);
  await eventually(
    "alice's first device to be removed",
    async () => (await devicesOf(alice.userId, bob)).size === 1,
  );

  const sentIds: string[] = [];
  for (let number = 0; number < 5; number++) {
    await bob.crypto.forceDiscardSession(room);
    sentIds.push(await bob.say(room, `while you were away, ${number}`));
  }

  const newLogin = await alice.onAnotherDevice({ withRecoveryKey: true });
  sessions.push(newLogin);
  await crossSign(newLogin, room);
  const rehydrated = new Promise<number>((resolve) => {
    newLogin.client.on(CryptoEvent.RehydrationProgress, (keys) => {
      if (keys >= sentIds.length) resolve(keys);
    });
  });
  await newLogin.crypto.startDehydration();
  const keys = await within('the keys for the dehydrated device', rehydrated);
  assert.equal(keys, sentIds.length);
  for (const [number, eventId] of sentIds.entries()) {
    const event = await newLogin.decrypted(room, eventId);
    assert.equal(event.getContent()['body'], `while you were away, ${number}`);
  }
});

test('decrypts messages through a dehydrated device that has replaced a used one', async () => {
  const [, , newLogin] = sessions as [unknown, unknown, EncryptedSession];
  const room = await createEncryptedRoom([bob, newLogin]);
  const dehydrated = [...(await devicesOf(alice.userId, bob)).keys()].filter(
    (id) => id !== newLogin.deviceId,
  );
  assert.equal(dehydrated.length, 1);
  newLogin.goOffline();
  const eventId = await bob.say(room, 'are you there?');
  const third = await newLogin.onAnotherDevice({ withRecoveryKey: true });
  sessions.push(third);
  await crossSign(third, room);
  await third.crypto.startDehydration();
  assert.equal((await third.decrypted(room, eventId)).getContent()['body'], 'are you there?');
});
