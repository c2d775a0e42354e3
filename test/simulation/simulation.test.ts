import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { isThorough } from '../support/inputs/thoroughness.ts';

/** How many seeds are run; each takes about half a second of a core. */
const seeds = process.env['HEARTH_SIMULATION_SEEDS'] ?? (isThorough ? '500' : '30');

interface Ended {
  readonly code: number;
  readonly output: string;
}

/** Runs `main.ts` in a process of its own, whose platform it replaces. */
function simulations(...options: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const main = join(import.meta.dirname, 'main.ts');
    execFile(process.execPath, [main, ...options], { maxBuffer: 2 ** 26 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: stdout + stderr });
    });
  });
}

describe('many servers on a network that fails', { concurrency: 2 }, () => {
  for (const part of ['0', '1']) {
    const which = part === '0' ? 'even' : 'odd';
    it(`agree once it has healed, on rooms and keys, and have everything that was acknowledged: ${which} seeds`, async () => {
      const { code, output } = await simulations('--seeds', seeds, '--parts', '2', '--part', part);
      assert.equal(code, 0, output);
    });
  }
});

it('runs of one seed are all the same', async () => {
  const first = await simulations('--from', '3', '--seeds', '2', '--digest');
  assert.match(first.output, /seed 4: [0-9a-f]{64}/);
  assert.deepEqual(await simulations('--from', '3', '--seeds', '2', '--digest'), first);
});
