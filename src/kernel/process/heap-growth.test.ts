import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { HeapGrowth } from './heap-growth.ts';

const mebibyte = 1024 * 1024;
const startParameters = ['--max-semi-space-size=16', '--heap-growing-percent=40'];

/** Returns the percentages that are set while the heap has these sizes in MiB, one after the other. */
function percentagesFor(sizes: readonly number[], parameters: readonly string[] = startParameters): number[] {
  const clock = manualClock();
  const percentages: number[] = [];
  let size = 0;
  const growth = new HeapGrowth({
    clock,
    parameters,
    heapSize: () => size * mebibyte,
    setPercent: (percent) => percentages.push(percent),
  });
  for (size of sizes) clock.advance(5_000);
  growth.stop();
  clock.advance(60_000);
  return percentages;
}

describe('HeapGrowth', () => {
  it('lets a small heap grow by 32 MiB between two collections, but at most to three times its size', () => {
    assert.deepEqual(percentagesFor([10, 16, 20, 32, 64]), [200, 160, 100, 50]);
  });

  it('lets a large heap grow by 40 % between two collections', () => {
    assert.deepEqual(percentagesFor([32, 80, 400, 1_000]), [100, 40]);
  });

  it('sets an unchanged percentage only once', () => {
    assert.deepEqual(percentagesFor([32, 32, 32]), [100]);
  });

  it('keeps a percentage that the operator has set, and the default of V8 where none is set', () => {
    assert.deepEqual(percentagesFor([48], ['--heap-growing-percent=20']), []);
    assert.deepEqual(percentagesFor([48], []), []);
  });

  it('has the same percentage at the start as bin/memory-settings.js', () => {
    const settings = readFileSync(new URL('../../../bin/memory-settings.js', import.meta.url), 'utf8');
    assert.match(settings, /'--heap-growing-percent': 40/);
  });
});
