import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { hearthGoal } from '../goals.ts';
import type { Scenario } from '../scenario.ts';

const program = fileURLToPath(new URL('../push/large-room.ts', import.meta.url));

/** Runs the bench of push rules in a process of its own, while the server is idle. */
export const push: Scenario<undefined> = {
  name: 'push',
  targets: ['hearth'],
  prepare: async () => undefined,
  loads: [
    {
      name: 'push',
      title: 'push rules, one message in a room of 10,000 members with default rules',
      operation: 'programs',
      runsOnce: true,
      goals: [
        hearthGoal(
          'CPU us per member for the decision',
          { atMost: 10 },
          ({ figures }) => figures['decisions'],
        ),
        hearthGoal(
          'CPU us per member for the unread count',
          { atMost: 10 },
          ({ figures }) => figures['counts'],
        ),
        hearthGoal(
          'CPU us per member for the first decision',
          {},
          ({ figures }) => figures['decisionsFirst'],
        ),
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
