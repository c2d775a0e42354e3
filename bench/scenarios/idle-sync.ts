import { multipleOfPeer, percentOfCeiling } from '../goals.ts';
import { type Account, expectOk, registerAccounts, syncPath } from '../load/account.ts';
import { closedLoop } from '../load/closed-loop.ts';
import { nextBatch } from '../load/next-batch.ts';
import { inParallel } from '../load/parallel.ts';
import type { Scenario } from '../scenario.ts';

interface Setup {
  readonly clients: readonly Account[];
  /** Path of the request of the client with the same index. */
  readonly paths: readonly string[];
}

const clientCount = 32;
const roomCount = 10;

/** Clients that repeat an incremental sync. Their rooms have no new events. */
export const idleSync: Scenario<Setup> = {
  name: 'idle-sync',
  targets: ['hearth', 'ceiling', 'peer'],
  async prepare(target) {
    const clients = await registerAccounts(target, clientCount);
    const [owner, ...others] = clients;
    const rooms = await inParallel(roomCount, 1, () => owner!.createPublicRoom());
    await inParallel(others.length, 4, async (index) => {
      for (const room of rooms) await others[index]!.join(room);
    });
    const paths = await inParallel(clientCount, 4, async (index) => {
      const since =
        nextBatch(await clients[index]!.sync({ timeout: '0', set_presence: 'offline' })) ?? 'none';
      return syncPath({ since, timeout: '0', set_presence: 'offline' });
    });
    return { clients, paths };
  },
  loads: [
    {
      name: 'idle-sync',
      title: 'idle incremental sync, 32 clients in 10 rooms',
      operation: 'syncs',
      goals: [percentOfCeiling(70), multipleOfPeer()],
      run: ({ clients, paths }, seconds) =>
        closedLoop(clients.length, seconds, async (index) => {
          expectOk(await clients[index]!.connection.request('GET', paths[index]!), 'sync');
        }),
    },
  ],
  dispose({ clients }) {
    for (const { connection } of clients) connection.close();
  },
};
