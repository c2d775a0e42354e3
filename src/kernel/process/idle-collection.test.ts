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
  const pass = async (seconds: number, milliseconds: number) => {
    for (let second = 0; second < seconds; second++) {
      state.cpu += milliseconds * 1_000;
      clock.advance(1_000);
      await new Promise(setImmediate);
    }
  };
  return { state, pass, stop: () => collection.stop() };
}

describe('IdleCollection', () => {
  it('collects garbage once after 20 seconds with little CPU time', async () => {
    const { state, pass } = makeProcess();
    await pass(19, 10);
    assert.equal(state.collections, 0);
    await pass(600, 10);
    assert.equal(state.collections, 1);
  });

  it('does not collect garbage while the process is busy', async () => {
    const { state, pass } = makeProcess();
    for (let i = 0; i < 10; i++) {
      await pass(15, 10);
      await pass(5, 500);
    }
    assert.equal(state.collections, 0);
  });

  it('collects garbage again after the next busy period only if the heap has grown', async () => {
    const { state, pass } = makeProcess();
    await pass(60, 10);
    await pass(10, 500);
    state.heap += 2 * mebibyte;
    await pass(60, 10);
    assert.equal(state.collections, 1);
    await pass(10, 500);
    state.heap += 20 * mebibyte;
    await pass(60, 10);
    assert.equal(state.collections, 2);
  });

  it('collects no garbage after it is stopped', async () => {
    const { state, pass, stop } = makeProcess();
    stop();
    await pass(60, 0);
    assert.equal(state.collections, 0);
  });

  it('runs the collector of V8 by default', async () => {
    const clock = manualClock();
    const collection = new IdleCollection({ clock, cpuTime: () => 0, heapSize: () => 100 * mebibyte });
    const garbage = (() => new WeakRef({ unused: true }))();
    // A weak reference holds its target until the end of the turn.
    await new Promise(setImmediate);
    clock.advance(30_000);
    // The collector runs in tasks of the event loop's idle time.
    while (garbage.deref() !== undefined) await delay(5);
    collection.stop();
  });
});
