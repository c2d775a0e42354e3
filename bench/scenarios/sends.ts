import { multipleOfPeer, percentOfCeiling } from '../goals.ts';
import { type Account, registerAccounts } from '../load/account.ts';
import { closedLoop } from '../load/closed-loop.ts';
import { inParallel } from '../load/parallel.ts';
import type { Goal, Scenario } from '../scenario.ts';
import type { Target } from '../target.ts';
import { sampleText } from './sample-text.ts';

interface Setup {
  readonly clients: readonly Account[];
  /** Room in which the client with the same index sends. */
  readonly rooms: readonly string[];
}

const clientCount = 32;

/**
 * Returns a scenario with 32 clients, each of which sends one message after the other.
 * @param makeRooms creates the rooms; returns the room of each client
 */
function sends(
  name: string,
  title: string,
  goals: readonly Goal[],
  makeRooms: (clients: readonly Account[]) => Promise<string[]>,
): Scenario<Setup> {
  return {
    name,
    targets: ['hearth', 'ceiling', 'peer'],
    async prepare(target: Target) {
      const clients = await registerAccounts(target, clientCount);
      return { clients, rooms: await makeRooms(clients) };
    },
    loads: [
      {
        name,
        title,
        operation: 'sends',
        goals,
        run: ({ clients, rooms }, seconds) =>
          closedLoop(clients.length, seconds, (index) => clients[index]!.send(rooms[index]!, sampleText)),
      },
    ],
    dispose({ clients }) {
      for (const { connection } of clients) connection.close();
    },
  };
}

/** Each client sends in a room of its own. */
export const sendsInManyRooms = sends(
  'sends-32-rooms',
  'sends, 32 rooms, 32 clients',
  [percentOfCeiling(50), multipleOfPeer(40)],
  (clients) => inParallel(clients.length, 4, (index) => clients[index]!.createPublicRoom()),
);

/** All clients send in the same room. */
export const sendsInOneRoom = sends(
  'sends-one-room',
  'sends, one room, 32 clients',
  [percentOfCeiling(35)],
  async (clients) => {
    const [owner, ...others] = clients;
    const room = await owner!.createPublicRoom();
    await inParallel(others.length, 4, (index) => others[index]!.join(room));
    return clients.map(() => room);
  },
);
