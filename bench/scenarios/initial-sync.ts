import { ofHearth, timesThePeer } from '../goals.ts';
import { type Account, registerAccounts } from '../load/account.ts';
import { closedLoop } from '../load/closed-loop.ts';
import { inParallel } from '../load/parallel.ts';
import type { Load, Scenario } from '../scenario.ts';
import { messageText } from './message-text.ts';

interface Stage {
  readonly reader: Account;
  readonly neighbours: readonly Account[];
}

const roomCount = 200;
const neighbourCount = 6;
const messageCount = 10;

/** One client that does nothing but initial syncs. @param filter as in the specification. */
function initialSync(name: string, title: string, atMost: number, filter: object): Load<Stage> {
  // Part of the query that changes nothing, so that no answer is a copy of the one before.
  let timeout = 0;
  return {
    name,
    title,
    operation: 'syncs',
    goals: [ofHearth('ms (p50)', { atMost }, ({ p50 }) => p50), timesThePeer()],
    run: ({ reader }, seconds) =>
      closedLoop(1, seconds, async () => {
        const query = { timeout: `${timeout++}`, filter: JSON.stringify(filter), set_presence: 'offline' };
        await reader.sync(query);
      }),
  };
}

/** An account in 200 rooms with a few members and a page of messages each. */
export const initialSyncs: Scenario<Stage> = {
  name: 'initial-sync',
  targets: ['hearth', 'peer'],
  async prepare(target) {
    const [reader, ...neighbours] = await registerAccounts(target, 1 + neighbourCount);
    const makers = 4;
    const rooms = await inParallel(roomCount, 1, () => reader!.createPublicRoom());
    await inParallel(neighbours.length, makers, async (index) => {
      for (const room of rooms) await neighbours[index]!.join(room);
    });
    await inParallel(makers, makers, async (index) => {
      const own = rooms.filter((_, number) => number % makers === index);
      for (const room of own) {
        for (let count = 0; count < messageCount; count++) await neighbours[index]!.send(room, messageText);
      }
    });
    return { reader: reader!, neighbours };
  },
  loads: [
    initialSync('initial-sync', `initial sync, ${roomCount} rooms`, 150, {}),
    initialSync('initial-sync-lazy', `initial sync, ${roomCount} rooms, members lazily loaded`, 60, {
      room: { state: { lazy_load_members: true } },
    }),
  ],
  dispose({ reader, neighbours }) {
    for (const { connection } of [reader, ...neighbours]) connection.close();
  },
};
