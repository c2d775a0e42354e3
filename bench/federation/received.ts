import type { DatabaseOptions } from '../../src/kernel/database/index.ts';
import { until } from '../../test/support/other-servers/federation-sender.ts';
import { SeveralServers } from '../../test/support/other-servers/several-servers.ts';
import type { TestClient } from '../../test/support/users/test-client.ts';
import { compare } from '../compare.ts';
import { inParallel } from '../load/parallel.ts';

/** Number of messages of one measurement. */
const messages = 400;

/** Number of messages that are sent at the same time. */
const clients = 32;

/**
 * Measures the time from sending messages on one server until the other server has all of them, compared with sending
 * the same number of messages in rooms without other members. Both servers and the clients share this process.
 */
export async function receivedMessages(kind: DatabaseOptions['kind'], rooms: number): Promise<void> {
  const { several, servers } = await SeveralServers.open(kind, ['a.test', 'b.test']);
  const [alice, bob] = [await servers[0].registerClient('alice'), await servers[1].registerClient('bob')];
  const localRooms: string[] = [];
  const sharedRooms: string[] = [];
  for (let i = 0; i < rooms; i++) {
    localRooms.push(await alice.createRoom());
    sharedRooms.push(await alice.createRoom());
    const path = `/join/${encodeURIComponent(sharedRooms[i]!)}`;
    await bob.do('POST', path, {}, { server_name: 'a.test', via: 'a.test' });
  }
  await compare({
    name: `messages to another server, ${rooms} ${rooms === 1 ? 'room' : 'rooms'}`,
    count: messages,
    unit: 'events',
    work: async () => {
      for (const [roomId, eventId] of await sendMessages(alice, sharedRooms)) {
        const path = `/rooms/${encodeURIComponent(roomId)}/event/${encodeURIComponent(eventId)}`;
        await until(async () => (await bob.call('GET', path)).status === 200);
      }
    },
    plain: () => sendMessages(alice, localRooms),
  });
  await several.stop();
}

/** Sends messages to rooms in turn, then one more to each room. @returns the id of the last message by room id */
async function sendMessages(sender: TestClient, rooms: readonly string[]): Promise<Map<string, string>> {
  const last = new Map<string, string>();
  await inParallel(messages, clients, async (index) => {
    const roomId = rooms[index % rooms.length]!;
    last.set(roomId, await sender.say(roomId, `message ${index}`));
  });
  for (const roomId of rooms) last.set(roomId, await sender.say(roomId, 'last message'));
  return last;
}
