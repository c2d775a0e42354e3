/**
 * Simulates many homeservers on an unreliable network. A seed decides everything that happens: `npm run
 * simulate -- --seed 7` prints the events of one run, `--seeds 500 --from 1` runs many seeds and names those
 * that fail, `--parts 2 --part 0` runs every second of them. `--digest` and `--trace` print the digest and the events of each seed.
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
    parts: { type: 'string', default: '1' },
    part: { type: 'string', default: '0' },
    digest: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
  },
});

const folder = mkdtempSync(join(tmpdir(), 'hearth-simulations-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
process.on('unhandledRejection', (error) => {
  process.stdout.write(`unhandled: ${(error as Error).stack}\n`);
  process.exitCode = 1;
});

async function runSeed(seed: number): Promise<boolean> {
  const { failures, digest } = await simulate(seed, template, values.trace || values.seed !== undefined);
  for (const failure of failures) process.stdout.write(`seed ${seed}: ${failure}\n`);
  if (values.digest) process.stdout.write(`seed ${seed}: ${digest}\n`);
  return failures.length === 0;
}

const template = await makeDatabaseTemplate(folder);
if (values.seed !== undefined) {
  process.exitCode = (await runSeed(Number(values.seed))) ? 0 : 1;
} else {
  const [from, count, parts, part] = [values.from, values.seeds, values.parts, values.part].map(Number) as [
    number,
    number,
    number,
    number,
  ];
  const failed: number[] = [];
  let run = 0;
  for (let seed = from; seed < from + count; seed++) {
    if (seed % parts !== part) continue;
    run += 1;
    if (!(await runSeed(seed))) failed.push(seed);
  }
  process.stdout.write(`${run} seeds, ${failed.length} failed: ${failed.join(' ')}\n`);
  if (failed.length > 0) {
    process.stdout.write(`To see what happened: npm run simulate -- --seed ${failed[0]}\n`);
    process.exitCode = 1;
  }
}
