/**
 * Simulates many homeservers on an unreliable network. A seed decides everything that happens: `npm run simulate --
 * --seed 7` prints the events of one run, `--seeds 500 --from 1` runs many seeds and names the seeds that fail.
 * `--digest` prints the digest of each seed, and `--trace 4` the events of the first four.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { simulatePlatform } from './simulated-platform.ts';

simulatePlatform();
const { makeDatabaseTemplate, simulate } = await import('./simulate.ts');

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string', default: '500' },
    from: { type: 'string', default: '1' },
    digest: { type: 'boolean', default: false },
    trace: { type: 'string', default: '0' },
  },
});

const folder = mkdtempSync(join(tmpdir(), 'hearth-simulations-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
process.on('unhandledRejection', (error) => {
  process.stdout.write(`unhandled: ${(error as Error).stack}\n`);
  process.exitCode = 1;
});

async function runSeed(seed: number, print: boolean): Promise<boolean> {
  const { failures, digest } = await simulate(seed, template, print);
  for (const failure of failures) process.stdout.write(`seed ${seed}: ${failure}\n`);
  if (values.digest) process.stdout.write(`seed ${seed}: ${digest}\n`);
  return failures.length === 0;
}

const template = await makeDatabaseTemplate(folder);
if (values.seed !== undefined) {
  process.exitCode = (await runSeed(Number(values.seed), true)) ? 0 : 1;
} else {
  const from = Number(values.from);
  const count = Number(values.seeds);
  const traced = Number(values.trace);
  const failed: number[] = [];
  for (let seed = from; seed < from + count; seed++) {
    if (!(await runSeed(seed, seed < from + traced))) failed.push(seed);
  }
  process.stdout.write(`${count} seeds, ${failed.length} failed: ${failed.join(' ')}\n`);
  if (failed.length > 0) {
    process.stdout.write(`To see what happened: npm run simulate -- --seed ${failed[0]}\n`);
    process.exitCode = 1;
  }
}
