import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Heap } from './heap.ts';

test('Heap pops its smallest item each time', () => {
  const steps = fc.array(fc.oneof(fc.integer({ min: 0, max: 50 }), fc.constant('pop' as const)));
  fc.assert(
    fc.property(steps, (sequence) => {
      const heap = new Heap<number>((a, b) => a - b);
      let model: number[] = [];
      for (const step of sequence) {
        if (step === 'pop') {
          assert.equal(heap.pop(), model[0]);
          model = model.slice(1);
        } else {
          heap.push(step);
          model = [...model, step].sort((a, b) => a - b);
        }
      }
      for (const item of model) assert.equal(heap.pop(), item);
      assert.equal(heap.pop(), undefined);
    }),
  );
});
