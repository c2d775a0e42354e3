import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { eventually } from '../clients/eventually.ts';
import { encryptedRoom } from '../clients/js-sdk/encrypted-room.ts';
import { EncryptedSession } from '../clients/js-sdk/encrypted-session.ts';
import { comparePictures, nextRequest } from '../clients/js-sdk/verification.ts';
import { Meeting } from './meeting.ts';
import type { Member } from './network.ts';
import { Someone } from './someone.ts';

/** Messages that each of two says, and after how many the sender takes another key. */
const [messages, rotation] = [40, 5];

interface Said {
  readonly eventId: string;
  readonly text: string;
}

Meeting.ofItsOwn('encryption', (meeting) => {
  let ours: EncryptedSession;
  let theirs: EncryptedSession;
  const sessions: EncryptedSession[] = [];
  before(async () => {
    const { hearth, reference } = meeting.servers;
    [ours, theirs] = await Promise.all([
      EncryptedSession.ofEquippedUser(hearth.url, 'olga'),
      EncryptedSession.ofEquippedUser(reference.url, 'otto'),
    ]);
    sessions.push(ours, theirs);
    meeting.welcome(personOf(hearth, ours), personOf(reference, theirs));
  });
  after(() => {
    for (const session of sessions) session.stop();
  });

  const ways: readonly (readonly [string, () => readonly [EncryptedSession, EncryptedSession]])[] = [
    ["in a room of Hearth's", () => [ours, theirs]],
    ["in a room of the other's", () => [theirs, ours]],
  ];

  for (const [way, pair] of ways) {
    meeting.scenario(
      `two read all that they say while both servers are killed and started, ${way}`,
      async () => {
        const [host, guest] = pair();
        const room = await encryptedRoom([host, guest], rotation);
        const said: Said[] = [];
        const talking = Promise.all([host, guest].map((speaker) => talk(speaker, room, said)));
        const { hearth, reference } = meeting.servers;
        for (const [server, until] of [
          [hearth, messages / 2],
          [reference, messages],
        ] as const) {
          await eventually('them to talk', () => said.length >= until);
          assert.ok(said.length < 2 * messages, 'they must still be talking');
          await server.kill();
          await server.start();
        }
        await talking;
        for (const session of [host, guest]) await session.reconnect();
        await assertAllRead(room, said, [host, guest]);
      },
    );

    meeting.scenario(`a new device is written to, and its end is heard of, ${way}`, async () => {
      const [owner, peer] = pair();
      const room = await encryptedRoom([peer, owner], rotation);
      const fresh = await owner.onAnotherDevice({ withRecoveryKey: true });
      sessions.push(fresh);
      await fresh.room(room);
      const devices = async () => {
        const known = await peer.crypto.getUserDeviceInfo([owner.userId]);
        return [...(known.get(owner.userId)?.keys() ?? [])];
      };
      await eventually('the device', async () => (await devices()).includes(fresh.deviceId));
      for (const [speaker, listener] of [
        [peer, fresh],
        [fresh, peer],
      ] as const) {
        const eventId = await speaker.say(room, 'welcome');
        const event = await listener.read(room, eventId);
        assert.deepEqual([event.getWireType(), event.getContent()['body']], ['m.room.encrypted', 'welcome']);
      }
      await fresh.client.logout(true);
      await eventually('its end', async () => !(await devices()).includes(fresh.deviceId));
    });
  }

  meeting.scenario('they verify each other, in a room and between devices', async () => {
    const room = await encryptedRoom([ours, theirs], rotation);
    const inRoom = nextRequest(theirs);
    await comparePictures(await ours.crypto.requestVerificationDM(theirs.userId, room), await inRoom);
    // Clients forget a request that is done with their next sync, and cancel one that comes before that.
    const said: Said[] = [];
    for (const speaker of [ours, theirs]) {
      const text = `${speaker.userId} has seen it`;
      said.push({ eventId: await speaker.insist(room, text), text });
    }
    await assertAllRead(room, said, [ours, theirs]);
    const toDevice = nextRequest(ours);
    const request = await theirs.crypto.requestDeviceVerification(ours.userId, ours.deviceId);
    await comparePictures(request, await toDevice);
    for (const [viewer, viewed] of [
      [ours, theirs],
      [theirs, ours],
    ] as const) {
      await eventually('the verification', async () =>
        (await viewer.crypto.getUserVerificationStatus(viewed.userId)).isVerified(),
      );
      const status = await viewer.crypto.getDeviceVerificationStatus(viewed.userId, viewed.deviceId);
      assert.equal(status?.crossSigningVerified, true);
    }
  });
});

function personOf(server: Member, { userId, deviceId, client }: EncryptedSession): Someone {
  const login = { user_id: userId, device_id: deviceId, access_token: client.getAccessToken()! };
  return new Someone(server, login);
}

/** Says something, one after the other, also while the server is away. */
async function talk(speaker: EncryptedSession, room: string, said: Said[]): Promise<void> {
  for (let number = 0; number < messages; number++) {
    const text = `${speaker.userId}: ${number}`;
    said.push({ eventId: await speaker.insist(room, text), text });
  }
}

/** Everybody reads everything, encrypted as it was sent. */
async function assertAllRead(
  room: string,
  said: readonly Said[],
  listeners: readonly EncryptedSession[],
): Promise<void> {
  const unread: string[] = [];
  for (const listener of listeners) {
    for (const { eventId, text } of said) {
      // Who waited in vain once does not wait as long for each of the others.
      const wait = unread.length === 0 ? undefined : 1_000;
      try {
        await listener.find(room, eventId, wait);
        const event = await listener.read(room, eventId, wait);
        assert.deepEqual([event.getWireType(), event.getContent()['body']], ['m.room.encrypted', text]);
      } catch (error) {
        unread.push(String(error));
      }
    }
  }
  assert.deepEqual(unread, []);
}
