import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../clients/eventually.ts';
import { encryptedRoom } from '../clients/js-sdk/encrypted-room.ts';
import { EncryptedSession } from '../clients/js-sdk/encrypted-session.ts';
import { Network } from './network.ts';
import { enc, type Json, type Someone, type Sync } from './someone.ts';

/** Milliseconds that something may take from one server to the other, and between two attempts to find an event. */
const [patience, retryDelay] = [60_000, 500];

/** Messages to say for each of two, and after how many the sender takes another key. */
const [messages, rotation] = [100, 10];

describe('with the reference server', () => {
  let network: Network;
  let here: Someone;
  let there: Someone;
  const sessions: EncryptedSession[] = [];
  before(async () => {
    network = await Network.start();
    ({ here, there } = await network.two('anna'));
  });
  after(async () => {
    for (const session of sessions) session.stop();
    await network?.stop();
  });

  async function session(url: string, name: string): Promise<EncryptedSession> {
    const made = await EncryptedSession.ofEquippedUser(url, name);
    sessions.push(made);
    return made;
  }

  const bothWays = (title: string, run: (sender: Someone, receiver: Someone) => Promise<void>) => {
    it(`${title}, from Hearth`, () => run(here, there));
    it(`${title}, to Hearth`, () => run(there, here));
  };

  bothWays('messages to devices arrive once each, in order', async (sender, receiver) => {
    const count = 120;
    await receiver.synced('anything', () => true);
    for (let number = 0; number < count; number++) {
      const messages = { [receiver.id]: { '*': { number } } };
      await sender.do('PUT', `/sendToDevice/org.example.count/${enc(sender.id)}-${number}`, { messages });
    }
    const numbers: unknown[] = [];
    const take = ({ to_device }: Sync) => {
      for (const { type, sender: from, content } of to_device?.events ?? []) {
        if (type !== 'org.example.count') continue;
        assert.equal(from, sender.id);
        numbers.push((content as Json)['number']);
      }
      return numbers.length >= count;
    };
    await receiver.synced('all messages', take);
    await receiver.synced('what may come a second time', take);
    assert.deepEqual(
      numbers,
      Array.from({ length: count }, (_, number) => number),
    );
  });

  describe('people with encrypted rooms', () => {
    let one: EncryptedSession;
    let other: EncryptedSession;
    let room: string;
    before(async () => {
      one = await session(network.hearth.url, 'olga');
      other = await session(network.reference.url, 'otto');
    });

    for (const [title, pair] of [
      ["in a room of Hearth's", () => [one, other]],
      ["in a room of the other's", () => [other, one]],
    ] as const) {
      it(`read all that they say while Hearth restarts, ${title}`, async () => {
        const [host, guest] = pair() as [EncryptedSession, EncryptedSession];
        room = await encryptedRoom([host, guest], rotation);
        const said: { readonly eventId: string; readonly text: string }[] = [];
        const talk = async (speaker: EncryptedSession) => {
          for (let number = 0; number < messages; number++) {
            const text = `${speaker.userId}: ${number}`;
            said.push({ eventId: await speaker.insist(room, text), text });
          }
        };
        const talking = Promise.all([talk(host), talk(guest)]);
        await eventually('half of it', () => said.length >= messages, 4 * patience);
        await network.hearth.process.stop();
        await network.hearth.process.start();
        await talking;
        await one.reconnect();
        const unread: string[] = [];
        for (const listener of [host, guest]) {
          for (const { eventId, text } of said) {
            // Who waited in vain once does not wait as long for each of the others.
            const wait = unread.length === 0 ? patience : 1_000;
            await lookUp(listener, room, eventId, wait)
              .then(() => listener.read(room, eventId, wait))
              .then((event) => assert.equal(event.getContent()['body'], text))
              .catch((error: Error) => unread.push(error.message));
          }
        }
        assert.deepEqual(unread, []);
      });
    }

    for (const [title, pair] of [
      ['of Hearth', () => [one, other]],
      ['of the other server', () => [other, one]],
    ] as const) {
      it(`learn of a new device ${title}, write to it, and learn of its end`, async () => {
        const [owner, peer] = pair() as [EncryptedSession, EncryptedSession];
        const fresh = await owner.onAnotherDevice({ withRecoveryKey: true });
        sessions.push(fresh);
        await fresh.room(room);
        const devices = async () => {
          const known = await peer.crypto.getUserDeviceInfo([owner.userId]);
          return [...(known.get(owner.userId)?.keys() ?? [])];
        };
        await eventually('the device', async () => (await devices()).includes(fresh.deviceId), patience);
        await fresh.read(room, await peer.say(room, 'welcome'), patience);
        await peer.read(room, await fresh.say(room, 'thank you'), patience);
        await fresh.client.logout(true);
        await eventually('its end', async () => !(await devices()).includes(fresh.deviceId), patience);
      });
    }
  });
});

/** Has a client look up what its syncs have left out, as they do after it was away for more than they hold. */
async function lookUp(
  { client, userId }: EncryptedSession,
  roomId: string,
  eventId: string,
  wait: number,
): Promise<void> {
  const room = client.getRoom(roomId)!;
  const isThere = () => room.findEventById(eventId) !== undefined;
  await eventually(
    `${userId} to find ${eventId}`,
    async () => {
      if (isThere()) return true;
      await client.getEventTimeline(room.getUnfilteredTimelineSet(), eventId).catch(() => sleep(retryDelay));
      return isThere();
    },
    wait,
  );
}
