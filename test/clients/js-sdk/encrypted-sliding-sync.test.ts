import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually } from '../eventually.ts';
import { HearthProcess } from '../hearth-process.ts';
import { allIn, encryptedRoom, join } from './encrypted-room.ts';
import { EncryptedSession } from './encrypted-session.ts';
import { comparePictures, nextRequest } from './verification.ts';

let server: HearthProcess;
let alice: EncryptedSession;
let bob: EncryptedSession;
let carol: EncryptedSession;
const sessions: EncryptedSession[] = [];
before(async () => {
  server = await HearthProcess.create();
  await server.start();
  [alice, bob, carol] = await Promise.all([
    kept(EncryptedSession.ofEquippedUser(server.url, 'alice', 'sliding')),
    kept(EncryptedSession.ofEquippedUser(server.url, 'bob', 'sliding')),
    kept(EncryptedSession.ofEquippedUser(server.url, 'carol', 'classic')),
  ]);
});
after(async () => {
  for (const session of sessions) session.stop();
  await server?.remove();
});

async function kept(starting: Promise<EncryptedSession>): Promise<EncryptedSession> {
  const session = await starting;
  sessions.push(session);
  return session;
}

async function assertHeard(roomId: string, speaker: EncryptedSession, ...listeners: EncryptedSession[]) {
  const text = `${speaker.deviceId} says ${Math.random()}`;
  const eventId = await speaker.insist(roomId, text);
  for (const listener of listeners) {
    const event = await listener.read(roomId, eventId);
    assert.equal(event.getWireType(), 'm.room.encrypted');
    assert.equal(event.getContent()['body'], text);
  }
}

test('those who follow by sliding sync read and are read, also by those who do not', async () => {
  const room = await encryptedRoom([alice, bob, carol], 3);
  for (let round = 0; round < 5; round++) {
    await assertHeard(room, alice, bob, carol);
    await assertHeard(room, bob, alice, carol);
    await assertHeard(room, carol, alice, bob);
  }
});

test('they compare pictures', async () => {
  const received = nextRequest(bob);
  const sent = await alice.crypto.requestDeviceVerification(bob.userId, bob.deviceId);
  await comparePictures(sent, await received);
  await eventually('the verification', async () =>
    (await alice.crypto.getUserVerificationStatus(bob.userId)).isVerified(),
  );
});

test('they hear of new devices, of those that are gone, and of those who come and go', async () => {
  const room = await encryptedRoom([alice, bob]);
  const second = await kept(bob.onAnotherDevice({ withRecoveryKey: true }));
  const devices = async () => [
    ...((await alice.crypto.getUserDeviceInfo([bob.userId])).get(bob.userId)?.keys() ?? []),
  ];
  await eventually('the new device', async () => (await devices()).includes(second.deviceId));
  await second.room(room);
  await assertHeard(room, alice, bob, second);
  await second.client.logout(true);
  await eventually('it to be gone', async () => !(await devices()).includes(second.deviceId));
  await alice.client.invite(room, carol.userId);
  await join(carol, room);
  await allIn(room, alice, bob, carol);
  await assertHeard(room, alice, bob, carol);
  await assertHeard(room, carol, alice, bob);
});

test('and read everything through a restart of the server and a kill', async () => {
  const room = await encryptedRoom([alice, bob], 2);
  await assertHeard(room, alice, bob);
  const said = new Map<string, string>();
  for (const goDown of [() => server.stop(), () => server.kill()]) {
    const talking = Array.from({ length: 6 }, async (_, number) => {
      const text = `${said.size} ${number}`;
      said.set(await (number % 2 ? alice : bob).insist(room, text), text);
    });
    await goDown();
    await server.start();
    await Promise.all(talking);
  }
  for (const listener of [alice, bob]) {
    for (const [eventId, text] of said) {
      assert.equal((await listener.read(room, eventId, 180_000)).getContent()['body'], text);
    }
  }
});

test('one-time keys are counted: they are made anew when they are used up', async () => {
  const claim = async () => {
    const answer = await alice.client.claimOneTimeKeys([[bob.userId, bob.deviceId]], 'signed_curve25519');
    return Object.keys(answer.one_time_keys[bob.userId]?.[bob.deviceId] ?? {});
  };
  const claimed = new Set<string>();
  for (let number = 0; number < 80; number++) for (const key of await claim()) claimed.add(key);
  assert.equal(claimed.size, 80, 'more keys than a client has at first, none of them twice');
});
