import { setTimeout as sleep } from 'node:timers/promises';
import { hearthGoal } from '../goals.ts';
import type { Scenario } from '../scenario.ts';
import type { Target } from '../target.ts';

/** Milliseconds from the first response until the memory of the idle server is measured. */
const settleTime = 1500;
const mebibyte = 2 ** 20;

/** Measures the time from the start of the process to its first response, with existing data, and the memory when idle. */
export const coldStart: Scenario<Target> = {
  name: 'cold-start',
  targets: ['hearth', 'ceiling'],
  prepare: async (target) => target,
  loads: [
    {
      name: 'cold-start',
      title: 'cold start to the first answer',
      operation: 'starts',
      goals: [
        hearthGoal('ms', { atMost: 700 }, ({ p50 }) => p50),
        hearthGoal(
          'MiB resident when idle',
          { atMost: 120 },
          ({ residentBytes }) => residentBytes && residentBytes / mebibyte,
        ),
      ],
      async run(target) {
        const milliseconds = (await target.process?.restart()) ?? Number.NaN;
        await sleep(settleTime);
        return { operations: 1, seconds: milliseconds / 1000, latencies: [milliseconds] };
      },
    },
  ],
  dispose() {},
};
