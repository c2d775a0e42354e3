import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { hearthGoal } from '../goals.ts';
import type { Scenario } from '../scenario.ts';

const program = fileURLToPath(new URL('../protocol/state-resolution.ts', import.meta.url));

interface Timing {
  readonly version: string;
  readonly name: string;
  readonly milliseconds: number;
}

/** Runs the bench of state resolution in a process of its own, while the server is idle. */
export const stateResolution: Scenario<undefined> = {
  name: 'state-resolution',
  targets: ['hearth'],
  prepare: async () => undefined,
  loads: [
    {
      name: 'state-resolution',
      title: 'state resolution, 10,000 events in conflict',
      operation: 'resolutions',
      runsOnce: true,
      goals: [hearthGoal('ms for the slowest fork', { atMost: 300 }, ({ p99 }) => p99)],
      async run() {
        const { stdout } = await promisify(execFile)(process.execPath, [program, '--json']);
        const timings = JSON.parse(stdout) as Timing[];
        const latencies = timings.map(({ milliseconds }) => milliseconds);
        const figures = Object.fromEntries(
          timings.map(({ version, name, milliseconds }) => [`${name} in version ${version}`, milliseconds]),
        );
        const seconds = latencies.reduce((sum, milliseconds) => sum + milliseconds / 1000, 0);
        return { operations: latencies.length, seconds, latencies, figures };
      },
    },
  ],
  dispose() {},
};
