import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { isThorough } from '../support/inputs/thoroughness.ts';

/** Number of seeds that are run; each takes about a third of a second of one core. */
const seeds = process.env['HEARTH_SIMULATION_SEEDS'] ?? (isThorough ? '300' : '10');

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

/** Digests of all seeds; two processes compute half of them each. */
const digests: string[] = [];
const digestsIn = (output: string) => output.match(/^seed \d+: [0-9a-f]{64}$/gm) ?? [];

describe('simulated servers on an unreliable network', { concurrency: 2 }, () => {
  for (const part of ['0', '1']) {
    const which = part === '0' ? 'even' : 'odd';
    it(`brings all simulated servers to the same rooms and device keys, and loses no acknowledged event, once the network has healed: ${which} seeds`, async () => {
      const { code, output } = await simulations(
        '--seeds',
        seeds,
        '--parts',
        '2',
        '--part',
        part,
        '--digest',
      );
      assert.equal(code, 0, output);
      digests.push(...digestsIn(output));
    });
  }
});

describe('the simulation', () => {
  let output: string;
  before(async () => {
    ({ output } = await simulations('--from', '3', '--seeds', '3', '--digest', '--trace'));
  });

  it('repeats a seed exactly in another process', () => {
    const again = digestsIn(output);
    assert.equal(again.length, 3, output);
    assert.deepEqual(
      again,
      again.filter((digest) => digests.includes(digest)),
    );
  });

  it('simulates joins without members, knocks and every kind of EDU, with losses, partitions and crashes', () => {
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
