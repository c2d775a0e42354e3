import assert from 'node:assert/strict';
import { after, before } from '../clients/bounded-test.ts';
import { eventually } from '../clients/eventually.ts';
import { createEncryptedRoom } from '../clients/js-sdk/encrypted-room.ts';
import { EncryptedSession } from '../clients/js-sdk/encrypted-session.ts';
import { compareEmojis, nextVerificationRequest } from '../clients/js-sdk/verification.ts';
import type { Homeserver } from './interop-network.ts';
import { InteropSuite } from './interop-suite.ts';
import { InteropUser } from './interop-user.ts';

/** Number of messages of each user. */
const messageCount = 40;

/** Number of messages that a sender encrypts with one Megolm session. */
const rotation = 5;

interface SentMessage {
  readonly eventId: string;
  readonly text: string;
}

InteropSuite.onOwnServers('encryption', (suite) => {
  let hearthSession: EncryptedSession;
  let referenceSession: EncryptedSession;
  const sessions: EncryptedSession[] = [];
  before(async () => {
    const { hearth, reference } = suite.servers;
    [hearthSession, referenceSession] = await Promise.all([
      EncryptedSession.withCrossSigning(hearth.url, 'olga'),
      EncryptedSession.withCrossSigning(reference.url, 'otto'),
    ]);
    sessions.push(hearthSession, referenceSession);
    suite.addUsers(userOf(hearth, hearthSession), userOf(reference, referenceSession));
  });
  after(() => {
    for (const session of sessions) session.stop();
  });

  const roomServers: readonly (readonly [string, () => readonly [EncryptedSession, EncryptedSession]])[] = [
    ['in a room on Hearth', () => [hearthSession, referenceSession]],
    ['in a room on the reference server', () => [referenceSession, hearthSession]],
  ];

  for (const [roomServer, sessionPair] of roomServers) {
    suite.scenario(
      `delivers all encrypted messages while both servers are killed and restarted, ${roomServer}`,
      async () => {
        const [host, guest] = sessionPair();
        const room = await createEncryptedRoom([host, guest], rotation);
        const sentMessages: SentMessage[] = [];
        const sending = Promise.all([host, guest].map((sender) => sendMany(sender, room, sentMessages)));
        const { hearth, reference } = suite.servers;
        for (const [server, until] of [
          [hearth, messageCount / 2],
          [reference, messageCount],
        ] as const) {
          await eventually('messages to be sent', () => sentMessages.length >= until);
          assert.ok(sentMessages.length < 2 * messageCount, 'messages must still be sent at this point');
          await server.kill();
          await server.start();
        }
        await sending;
        for (const session of [host, guest]) await session.reconnect();
        await assertAllRead(room, sentMessages, [host, guest]);
      },
    );

    suite.scenario(`encrypts for a new device, and removes it after its logout, ${roomServer}`, async () => {
      const [owner, peer] = sessionPair();
      const room = await createEncryptedRoom([peer, owner], rotation);
      const newDevice = await owner.onAnotherDevice({ withRecoveryKey: true });
      sessions.push(newDevice);
      await newDevice.room(room);
      const devices = async () => {
        const devicesByUser = await peer.crypto.getUserDeviceInfo([owner.userId]);
        return [...(devicesByUser.get(owner.userId)?.keys() ?? [])];
      };
      await eventually('the device', async () => (await devices()).includes(newDevice.deviceId));
      for (const [sender, reader] of [
        [peer, newDevice],
        [newDevice, peer],
      ] as const) {
        const eventId = await sender.say(room, 'welcome');
        const event = await reader.decrypted(room, eventId);
        assert.deepEqual([event.getWireType(), event.getContent()['body']], ['m.room.encrypted', 'welcome']);
      }
      await newDevice.client.logout(true);
      await eventually('its removal', async () => !(await devices()).includes(newDevice.deviceId));
    });
  }

  suite.scenario('verifies users in a room and by to-device messages', async () => {
    const room = await createEncryptedRoom([hearthSession, referenceSession], rotation);
    const inRoom = nextVerificationRequest(referenceSession);
    await compareEmojis(
      await hearthSession.crypto.requestVerificationDM(referenceSession.userId, room),
      await inRoom,
    );
    // A client drops a finished request at its next sync, and cancels a request that comes before that. The messages
    // show that both clients have synced.
    const sentMessages: SentMessage[] = [];
    for (const sender of [hearthSession, referenceSession]) {
      const text = `${sender.userId} has verified`;
      sentMessages.push({ eventId: await sender.sendReliably(room, text), text });
    }
    await assertAllRead(room, sentMessages, [hearthSession, referenceSession]);
    const toDevice = nextVerificationRequest(hearthSession);
    const request = await referenceSession.crypto.requestDeviceVerification(
      hearthSession.userId,
      hearthSession.deviceId,
    );
    await compareEmojis(request, await toDevice);
    for (const [viewer, viewed] of [
      [hearthSession, referenceSession],
      [referenceSession, hearthSession],
    ] as const) {
      await eventually('the verification', async () =>
        (await viewer.crypto.getUserVerificationStatus(viewed.userId)).isVerified(),
      );
      const status = await viewer.crypto.getDeviceVerificationStatus(viewed.userId, viewed.deviceId);
      assert.equal(status?.crossSigningVerified, true);
    }
  });
});

function userOf(server: Homeserver, { userId, deviceId, client }: EncryptedSession): InteropUser {
  const login = { user_id: userId, device_id: deviceId, access_token: client.getAccessToken()! };
  return new InteropUser(server, login);
}

/** Sends the messages one after the other, and retries each while the server is down. */
async function sendMany(sender: EncryptedSession, room: string, sentMessages: SentMessage[]): Promise<void> {
  for (let number = 0; number < messageCount; number++) {
    const text = `${sender.userId}: ${number}`;
    sentMessages.push({ eventId: await sender.sendReliably(room, text), text });
  }
}

/** Checks that each session can decrypt all messages. */
async function assertAllRead(
  room: string,
  sentMessages: readonly SentMessage[],
  readers: readonly EncryptedSession[],
): Promise<void> {
  const failures: string[] = [];
  for (const reader of readers) {
    for (const { eventId, text } of sentMessages) {
      // After the first failure, the timeouts of later events are short, to save time.
      const timeout = failures.length === 0 ? undefined : 1_000;
      try {
        await reader.loadEvent(room, eventId, timeout);
        const event = await reader.decrypted(room, eventId, timeout);
        assert.deepEqual([event.getWireType(), event.getContent()['body']], ['m.room.encrypted', text]);
      } catch (error) {
        failures.push(String(error));
      }
    }
  }
  assert.deepEqual(failures, []);
}
