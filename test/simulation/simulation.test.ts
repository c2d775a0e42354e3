import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { isThorough } from '../support/inputs/thoroughness.ts';

const seeds = Number(process.env['HEARTH_SIMULATION_SEEDS'] ?? (isThorough ? 300 : 4));
/** Number of seeds that both processes run, to compare their digests. */
const repeatedSeeds = isThorough ? 3 : 1;
const first = 2;
const last = first + seeds - 1;
const middle = Math.max(first + repeatedSeeds - 1, Math.floor((first + last) / 2));
/** The seeds of each of two processes. */
const parts = {
  first: { from: first, to: middle },
  second: { from: middle - repeatedSeeds + 1, to: last },
};

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

/** The output of each process. */
const outputs: string[] = [];
/** Matches a line of the trace, which begins with the simulated seconds. */
const traced = /^ *\d+\.\d{3} {2}/;
const withoutTrace = (output: string) =>
  output
    .split('\n')
    .filter((line) => !traced.test(line))
    .join('\n');

describe('simulated servers on an unreliable network', { concurrency: 2 }, () => {
  for (const [which, { from, to }] of Object.entries(parts)) {
    it(`brings all simulated servers to the same rooms and device keys, and loses no acknowledged event, once the network has healed: ${which} part of the seeds`, async () => {
      const range = ['--from', String(from), '--seeds', String(to - from + 1)];
      const { code, output } = await simulations(...range, '--digest', '--trace', '4');
      assert.equal(code, 0, withoutTrace(output));
      outputs.push(output);
    });
  }
});

describe('the simulation', () => {
  it('the simulation repeats a seed exactly in another process', () => {
    const digests = outputs.flatMap((output) => output.match(/^seed \d+: [0-9a-f]{64}$/gm) ?? []);
    assert.equal(digests.length, seeds + repeatedSeeds);
    assert.equal(new Set(digests).size, seeds);
  });

  it('simulates joins without members, knocks and every kind of EDU, with losses, partitions and crashes', () => {
    const output = outputs.join('\n');
    for (const [what, pattern] of Object.entries(mustHappen)) assert.match(output, pattern, what);
  });
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
