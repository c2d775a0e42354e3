import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { isThorough } from '../support/inputs/thoroughness.ts';

/** Number of seeds that are run; each takes about half a second of one core. */
const seeds = process.env['HEARTH_SIMULATION_SEEDS'] ?? (isThorough ? '500' : '30');

interface Ended {
  readonly code: number;
  readonly output: string;
}

/** Runs `main.ts` in its own process, because it replaces parts of the platform. */
function simulations(...options: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const main = join(import.meta.dirname, 'main.ts');
    execFile(process.execPath, [main, ...options], { maxBuffer: 2 ** 26 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: stdout + stderr });
    });
  });
}

describe('simulated servers on an unreliable network', { concurrency: 2 }, () => {
  for (const part of ['0', '1']) {
    const which = part === '0' ? 'even' : 'odd';
    it(`agree on rooms and device keys and keep all acknowledged events once the network has healed: ${which} seeds`, async () => {
      const { code, output } = await simulations('--seeds', seeds, '--parts', '2', '--part', part);
      assert.equal(code, 0, output);
    });
  }
});

it('repeats a simulation exactly when it runs the same seed again', async () => {
  const first = await simulations('--from', '3', '--seeds', '2', '--digest');
  assert.match(first.output, /seed 4: [0-9a-f]{64}/);
  assert.deepEqual(await simulations('--from', '3', '--seeds', '2', '--digest'), first);
});

it('simulates joins without members, knocks and every kind of EDU, with losses, partitions and crashes', async () => {
  const traces = await Promise.all([3, 5].map((seed) => simulations('--seed', String(seed))));
  const all = traces.map(({ output }) => output).join('\n');
  for (const [what, pattern] of Object.entries(mustHappen)) assert.match(all, pattern, what);
});

const mustHappen: Readonly<Record<string, RegExp>> = {
  'a join without members': / 200: PUT \/v2\/send_join\/\S+omit_members/,
  'a knock': / 200: PUT \/v1\/send_knock\//,
  'a lost transaction': / lost: PUT \/v1\/send\//,
  'a partition': /PARTITIONED/,
  'a crash': /CRASH/,
  typing: /@\S+ types/,
  'a receipt': /@\S+ has read \$/,
  presence: /@\S+ is (online|offline|unavailable)/,
  'a message to a device': /@\S+ sends message \d+ to @/,
  'a change of a device list': /@\S+ (login|logout|rename): /,
};
