import { ofHearth, percentOfCeiling, timesThePeer } from '../goals.ts';
import { type Account, registerAccounts } from '../load/account.ts';
import { inParallel } from '../load/parallel.ts';
import type { Measurement, Scenario } from '../scenario.ts';

interface Stage {
  readonly owner: Account;
  readonly users: readonly Account[];
}

const userCount = 500;
const width = 32;
const hundred = 100;

/** Every user joins the same new room, thirty-two at a time. */
async function everybodyJoins({ owner, users }: Stage): Promise<Measurement> {
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

export const joins: Scenario<Stage> = {
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
          'times the first hundred’s time for the last hundred',
          { atMost: 1.15 },
          ({ figures }) => figures['lastHundredToFirst'],
        ),
      ],
      run: everybodyJoins,
    },
  ],
  dispose({ owner, users }) {
    for (const { connection } of [owner, ...users]) connection.close();
  },
};
