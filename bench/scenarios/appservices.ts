import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { hearthGoal } from '../goals.ts';
import type { Scenario } from '../scenario.ts';

const program = fileURLToPath(new URL('../appservices/hundred-services.ts', import.meta.url));

/** Runs the bench of application services in a process of its own, while the server is idle. */
export const appservices: Scenario<undefined> = {
  name: 'appservices',
  targets: ['hearth'],
  prepare: async () => undefined,
  loads: [
    {
      name: 'appservices',
      title: '100 application services, events in a room of 10,000 local members',
      operation: 'programs',
      runsOnce: true,
      goals: [
        hearthGoal(
          'CPU us per event that no service receives',
          { atMost: 20 },
          ({ figures }) => figures['none'],
        ),
        hearthGoal(
          'CPU us per event that all 100 services receive',
          { atMost: 2_000 },
          ({ figures }) => figures['all'],
        ),
        hearthGoal('CPU us for the first event of the room', {}, ({ figures }) => figures['first']),
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
