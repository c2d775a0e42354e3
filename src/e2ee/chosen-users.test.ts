import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { chooseUsers } from './chosen-users.ts';

const MiB = 1024 * 1024;

describe('chooseUsers', () => {
  it('leaves out the users with the most bytes when the keys of all exceed 8 MiB', () => {
    const bytes = new Map([
      ['@large:test', 7 * MiB],
      ['@small:test', 1_000],
      ['@medium:test', 2 * MiB],
    ]);
    const { batches, leftOut } = chooseUsers(
      ['@large:test', '@small:test', '@none:test', '@medium:test'],
      bytes,
    );
    assert.deepEqual(batches, [['@none:test', '@small:test'], ['@medium:test']]);
    assert.deepEqual([...leftOut], ['@large:test']);
  });

  it('puts each user into one batch or leaves the user out, with at most 500 users in a batch, and at most 1 MiB of keys in a batch of several users', () => {
    const sizes = fc.array(fc.integer({ min: 0, max: 4 * MiB }), { maxLength: 50 });
    fc.assert(
      fc.property(sizes, fc.integer({ min: 0, max: 1_200 }), (large, small) => {
        const bytes = new Map(large.map((size, index) => [`@l${index}:test`, size]));
        const userIds = [...bytes.keys(), ...Array.from({ length: small }, (_, index) => `@s${index}:test`)];
        const { batches, leftOut } = chooseUsers(userIds, bytes);
        assert.deepEqual([...batches.flat(), ...leftOut].sort(), userIds.sort());
        const totals = batches.map((batch) =>
          batch.reduce((sum, userId) => sum + (bytes.get(userId) ?? 0), 0),
        );
        assert.ok(totals.reduce((sum, total) => sum + total, 0) <= 8 * MiB);
        for (const [index, batch] of batches.entries())
          assert.ok(batch.length <= 500 && (totals[index]! <= MiB || batch.length === 1));
      }),
      { numRuns: 50 },
    );
  });
});
