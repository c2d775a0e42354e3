import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { planCleanup } from './plan.ts';

describe('the choice of state groups to remove and to merge (planCleanup)', () => {
  const chain = (...links: [number, number?][]) => links.map(([id, prevId]) => ({ id, prevId }));

  it('keeps unused state groups that several other groups are built on, and groups above upTo', async () => {
    const groups = chain([1], [2, 1], [3, 2], [4, 2], [5, 4], [6, 5], [7, 6], [8, 5]);
    const used = new Set([3, 7]);
    const plan = await planCleanup({ groups, used, growing: [], upTo: 7 });
    // Group 8 is above `upTo`. Groups 6 and 8 are built on group 5, and groups 3 and 4 on group 2.
    assert.deepEqual(plan.removed, []);
    assert.deepEqual(plan.rebases, [
      { id: 2, through: [1], prevId: undefined },
      { id: 5, through: [4], prevId: 2 },
      { id: 7, through: [6], prevId: 5 },
    ]);
  });

  it('merges consecutive unused state groups into the used group that is built on them, except in the chain of the current state', async () => {
    const groups = chain([1], [2, 1], [3, 2], [4, 3], [5, 2]);
    const plan = await planCleanup({ groups, used: new Set([4]), growing: [], upTo: 5 });
    assert.deepEqual(plan, { removed: [5], rebases: [{ id: 4, through: [3, 2, 1], prevId: undefined }] });
    const planWithGrowing = await planCleanup({ groups, used: new Set([4]), growing: [4], upTo: 5 });
    assert.deepEqual(planWithGrowing, { removed: [5], rebases: [] });
  });
});
