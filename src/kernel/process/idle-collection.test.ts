import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { IdleCollection } from './idle-collection.ts';

const mebibyte = 1024 * 1024;

/** A process whose CPU time and heap the test sets. */
function makeProcess() {
  const clock = manualClock();
  const state = { cpu: 0, heap: 100 * mebibyte, collections: 0 };
  const collection = new IdleCollection({
    clock,
    cpuTime: () => state.cpu,
    heapSize: () => state.heap,
    collect: async () => {
      state.collections++;
      state.heap = 50 * mebibyte;
    },
  });
  /**
   * Advances the clock second by second; in each second the process uses this many milliseconds of CPU time.
   */
  const advance = async (seconds: number, milliseconds: number) => {
    for (let second = 0; second < seconds; second++) {
      state.cpu += milliseconds * 1_000;
      clock.advance(1_000);
      await new Promise(setImmediate);
    }
  };
  return { state, advance, stop: () => collection.stop() };
}

describe('IdleCollection', () => {
  it('collects garbage once after 20 seconds with little CPU time', async () => {
    const { state, advance } = makeProcess();
    await advance(19, 10);
    assert.equal(state.collections, 0);
    await advance(600, 10);
    assert.equal(state.collections, 1);
  });

  it('does not collect garbage while the process is busy', async () => {
    const { state, advance } = makeProcess();
    for (let i = 0; i < 10; i++) {
      await advance(15, 10);
      await advance(5, 500);
    }
    assert.equal(state.collections, 0);
  });

  it('collects garbage again after the next busy period only if the heap has grown by 8 MiB', async () => {
    const { state, advance } = makeProcess();
    await advance(60, 10);
    await advance(10, 500);
    state.heap += 2 * mebibyte;
    await advance(60, 10);
    assert.equal(state.collections, 1);
    await advance(10, 500);
    state.heap += 20 * mebibyte;
    await advance(60, 10);
    assert.equal(state.collections, 2);
  });

  it('collects no garbage after it is stopped', async () => {
    const { state, advance, stop } = makeProcess();
    stop();
    await advance(60, 0);
    assert.equal(state.collections, 0);
  });

  it('runs the collector of V8 by default', async () => {
    const clock = manualClock();
    const collection = new IdleCollection({ clock, cpuTime: () => 0, heapSize: () => 100 * mebibyte });
    const garbage = (() => new WeakRef({ unused: true }))();
    // A weak reference holds its target until the end of the current turn of the event loop.
    await new Promise(setImmediate);
    clock.advance(30_000);
    // The collector runs in tasks of the event loop's idle time.
    while (garbage.deref() !== undefined) await delay(5);
    collection.stop();
  });
});
