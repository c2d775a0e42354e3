import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { hearthGoal } from '../goals.ts';
import type { Scenario } from '../scenario.ts';

const program = fileURLToPath(new URL('../modules/module-calls.ts', import.meta.url));

/** Runs the bench of module calls in a process of its own, while the server is idle. */
export const moduleCalls: Scenario<undefined> = {
  name: 'module-calls',
  targets: ['hearth'],
  prepare: async () => undefined,
  loads: [
    {
      name: 'module-calls',
      title: 'calls of a module',
      operation: 'programs',
      runsOnce: true,
      goals: [
        hearthGoal('CPU us per call', { atMost: 200 }, ({ figures }) => figures['limited']),
        hearthGoal('CPU us per call without the time limit', {}, ({ figures }) => figures['unlimited']),
      ],
      async run() {
        const startedAt = performance.now();
        const { stdout } = await promisify(execFile)(process.execPath, [program, '--json']);
        const seconds = (performance.now() - startedAt) / 1000;
        return { operations: 1, seconds, latencies: [seconds * 1000], figures: JSON.parse(stdout) };
      },
    },
  ],
  dispose() {},
};
