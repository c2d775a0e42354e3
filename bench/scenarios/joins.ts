import { hearthGoal, multipleOfPeer, percentOfCeiling } from '../goals.ts';
import { type Account, registerAccounts } from '../load/account.ts';
import { inParallel } from '../load/parallel.ts';
import type { Measurement, Scenario } from '../scenario.ts';

interface Setup {
  readonly owner: Account;
  readonly users: readonly Account[];
}

const userCount = 500;
/** Number of users who join at the same time. */
const concurrency = 32;
/** The duration of this many first joins is compared with the duration of as many last joins. */
const compared = 100;

/** Joins all users to one new room, 32 at a time. */
async function allUsersJoin({ owner, users }: Setup): Promise<Measurement> {
  const room = await owner.createPublicRoom();
  const latencies: number[] = [];
  const joinedAt: number[] = [];
  const startedAt = performance.now();
  await inParallel(users.length, concurrency, async (index) => {
    const before = performance.now();
    await users[index]!.join(room);
    const after = performance.now();
    latencies.push(after - before);
    joinedAt.push(after);
  });
  const firstJoins = joinedAt[compared - 1]! - startedAt;
  const lastJoins = joinedAt.at(-1)! - joinedAt.at(-1 - compared)!;
  return {
    operations: users.length,
    seconds: (performance.now() - startedAt) / 1000,
    latencies,
    figures: { lastToFirstJoins: lastJoins / firstJoins },
  };
}

/** Users who join a new public room. */
export const joins: Scenario<Setup> = {
  name: 'joins',
  targets: ['hearth', 'ceiling', 'peer'],
  async prepare(target) {
    const [owner, ...users] = await registerAccounts(target, userCount + 1);
    return { owner: owner!, users };
  },
  loads: [
    {
      name: 'joins',
      title: `joins of one public room by ${userCount} users`,
      operation: 'joins',
      goals: [
        percentOfCeiling(),
        multipleOfPeer(40),
        hearthGoal(
          'times as long for the last 100 joins as for the first 100',
          { atMost: 1.15 },
          ({ figures }) => figures['lastToFirstJoins'],
        ),
      ],
      run: allUsersJoin,
    },
  ],
  dispose({ owner, users }) {
    for (const { connection } of [owner, ...users]) connection.close();
  },
};
