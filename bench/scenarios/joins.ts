import { ofHearth, percentOfCeiling, timesThePeer } from '../goals.ts';
import { type Account, registerAccounts } from '../load/account.ts';
import { inParallel } from '../load/parallel.ts';
import type { Measurement, Scenario } from '../scenario.ts';

interface Setup {
  readonly owner: Account;
  readonly users: readonly Account[];
}

const userCount = 500;
const width = 32;
const hundred = 100;

/** Every user joins the same new room, 32 at a time. */
async function allUsersJoin({ owner, users }: Setup): Promise<Measurement> {
  const room = await owner.createPublicRoom();
  const latencies: number[] = [];
  const joinedAt: number[] = [];
  const startedAt = performance.now();
  await inParallel(users.length, width, async (index) => {
    const before = performance.now();
    await users[index]!.join(room);
    const after = performance.now();
    latencies.push(after - before);
    joinedAt.push(after);
  });
  const firstHundred = joinedAt[hundred - 1]! - startedAt;
  const lastHundred = joinedAt.at(-1)! - joinedAt.at(-1 - hundred)!;
  return {
    operations: users.length,
    seconds: (performance.now() - startedAt) / 1000,
    latencies,
    figures: { lastHundredToFirst: lastHundred / firstHundred },
  };
}

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
        timesThePeer(40),
        ofHearth(
          'times the duration of the first 100 joins for the last 100',
          { atMost: 1.15 },
          ({ figures }) => figures['lastHundredToFirst'],
        ),
      ],
      run: allUsersJoin,
    },
  ],
  dispose({ owner, users }) {
    for (const { connection } of [owner, ...users]) connection.close();
  },
};
