import { hearthGoal, multipleOfPeer } from '../goals.ts';
import { type Account, registerAccounts } from '../load/account.ts';
import { closedLoop } from '../load/closed-loop.ts';
import { inParallel } from '../load/parallel.ts';
import type { Load, Scenario } from '../scenario.ts';
import { sampleText } from './sample-text.ts';

interface Setup {
  readonly reader: Account;
  readonly otherMembers: readonly Account[];
}

const roomCount = 200;
const otherMemberCount = 6;
const messageCount = 10;

/**
 * Returns a load in which one client repeats initial syncs.
 * @param atMost goal for the median of the milliseconds
 * @param filter as in the specification
 */
function initialSync(name: string, title: string, atMost: number, filter: object): Load<Setup> {
  // Changes the query without effect, so that no response comes from a cache.
  let timeout = 0;
  return {
    name,
    title,
    operation: 'syncs',
    goals: [hearthGoal('ms (p50)', { atMost }, ({ p50 }) => p50), multipleOfPeer()],
    run: ({ reader }, seconds) =>
      closedLoop(1, seconds, async () => {
        const query = { timeout: `${timeout++}`, filter: JSON.stringify(filter), set_presence: 'offline' };
        await reader.sync(query);
      }),
  };
}

/** An account in 200 rooms, each with seven members and ten messages. */
export const initialSyncs: Scenario<Setup> = {
  name: 'initial-sync',
  targets: ['hearth', 'peer'],
  async prepare(target) {
    const [reader, ...otherMembers] = await registerAccounts(target, 1 + otherMemberCount);
    const senderCount = 4;
    const rooms = await inParallel(roomCount, 1, () => reader!.createPublicRoom());
    await inParallel(otherMembers.length, senderCount, async (index) => {
      for (const room of rooms) await otherMembers[index]!.join(room);
    });
    await inParallel(senderCount, senderCount, async (index) => {
      const roomsOfSender = rooms.filter((_, number) => number % senderCount === index);
      for (const room of roomsOfSender) {
        for (let count = 0; count < messageCount; count++) await otherMembers[index]!.send(room, sampleText);
      }
    });
    return { reader: reader!, otherMembers };
  },
  loads: [
    initialSync('initial-sync', `initial sync, ${roomCount} rooms`, 150, {}),
    initialSync('initial-sync-lazy', `initial sync, ${roomCount} rooms, lazy loading`, 60, {
      room: { state: { lazy_load_members: true } },
    }),
  ],
  dispose({ reader, otherMembers }) {
    for (const { connection } of [reader, ...otherMembers]) connection.close();
  },
};
