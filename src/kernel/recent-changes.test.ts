import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { manualClock } from '../../test/support/clocks/manual-clock.ts';
import { plainCaches } from '../../test/support/servers/caches.ts';
import { LastChanges, RecentChanges, RecentChangesByKey } from './recent-changes.ts';

describe('RecentChanges', () => {
  it('returns all changes of a range in their order, or undefined when some may be missing', () => {
    fc.assert(
      fc.property(fc.nat(200), fc.nat(220), fc.nat(220), (count, after, upTo) => {
        const recent = new RecentChanges<number>(10, 20);
        const all = Array.from({ length: count }, (_, index) => index + 11);
        for (const position of all) recent.add(position, position);
        const found = recent.between(after, upTo);
        const expected = all.filter((position) => position > after && position <= upTo);
        if (found) assert.deepEqual(found, expected);
        else assert.ok(after < 10 || count >= 20 * 2, 'a range that was not dropped must be known');
      }),
      { numRuns: 300 },
    );
  });

  it('drops the oldest changes when it holds twice its capacity', () => {
    const recent = new RecentChanges<string>(0, 2);
    for (const [index, change] of ['a', 'b', 'c'].entries()) recent.add(change, index + 1);
    assert.deepEqual(recent.between(0), ['a', 'b', 'c']);
    recent.add('d', 4);
    assert.equal(recent.between(1), undefined);
    assert.deepEqual(recent.between(2), ['c', 'd']);
  });

  it('bounds the total size of the changes, if changes have different sizes', () => {
    const recent = new RecentChanges<number>(0, 10, (size) => size);
    recent.add(9, 1);
    recent.add(9, 2);
    assert.deepEqual(recent.between(0), [9, 9]);
    recent.add(5, 3);
    assert.equal(recent.between(0), undefined);
    assert.deepEqual(recent.between(2), [5]);
    recent.add(50, 4);
    assert.equal(recent.between(3), undefined);
    assert.deepEqual(recent.between(4), []);
  });

  it('isUnchangedSince is true from the position of the newest change on, or, without changes, from the initial position on', () => {
    const recent = new RecentChanges<string>(5, 10);
    assert.deepEqual(
      [recent.isUnchangedSince(4), recent.isUnchangedSince(5), recent.newest],
      [false, true, 5],
    );
    recent.add('a', 7);
    assert.deepEqual(
      [recent.isUnchangedSince(6), recent.isUnchangedSince(7), recent.newest],
      [false, true, 7],
    );
  });
});

const bounds = (maxKeys: number, perKey: number) => ({
  name: 'recent',
  maxKeys,
  perKey,
  maxBytes: 1_000_000,
  changeBytes: 50,
});

describe('RecentChangesByKey', () => {
  it('drops the least recently used key when the changes of all keys exceed the maximum bytes', () => {
    const recent = new RecentChangesByKey<number>(0, plainCaches(manualClock()), {
      ...bounds(100, 500),
      maxBytes: 10_000,
    });
    recent.add('first', 1, 1);
    for (let position = 2; position <= 190; position++) recent.add('second', position, position);
    assert.equal(recent.between('first', 0, 190), undefined);
    assert.equal(recent.between('second', 1, 190)?.length, 189);
  });

  it('returns all changes of a key in a range, or undefined when some may be missing', () => {
    const keys = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 3000, size: 'max' });
    fc.assert(
      fc.property(keys, fc.nat(3000), fc.nat(3000), (given, after, upTo) => {
        const recent = new RecentChangesByKey<number>(10, plainCaches(manualClock()), bounds(3, 100));
        const all = given.map((key, index) => ({ key: `${key}`, position: index + 11 }));
        for (const { key, position } of all) recent.add(key, position, position);
        for (const key of ['0', '1', 'never']) {
          const found = recent.between(key, after, upTo);
          if (!found) continue;
          const expected = all
            .filter((one) => one.key === key && one.position > after && one.position <= upTo)
            .map(({ position }) => position);
          assert.deepEqual(found, expected);
        }
      }),
      { numRuns: 50 },
    );
  });

  it('bounds the changes of a key and the number of keys, and keeps the newest changes and keys', () => {
    const recent = new RecentChangesByKey<number>(0, plainCaches(manualClock()), bounds(100, 500));
    for (let position = 1; position <= 5000; position++) recent.add('key', position, position);
    assert.equal(recent.between('key', 0, 5000), undefined);
    assert.equal(recent.between('key', 4900, 5000)?.length, 100);
    for (let key = 0; key < 100; key++) recent.add(`${key}`, 0, 5001 + key);
    assert.equal(recent.between('key', 4900, 5000), undefined);
    assert.deepEqual(recent.between('unknown', 20_000, 30_000), []);
  });

  it('returns undefined for a range that begins before the position from which it knows all changes', () => {
    const recent = new RecentChangesByKey<number>(10, plainCaches(manualClock()), bounds(100, 500));
    assert.equal(recent.between('key', 9, 10), undefined);
    assert.deepEqual(recent.between('key', 10, 10), []);
  });
});

describe('LastChanges', () => {
  it('returns a position after which the key has not changed, whether the key is in memory or not', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 50 }), (given) => {
        const last = new LastChanges(10, plainCaches(manualClock()), { name: 'last', maxKeys: 3 });
        const positions = new Map<string, number>();
        for (const [index, key] of given.entries()) {
          last.set(`${key}`, index + 11);
          positions.set(`${key}`, index + 11);
        }
        for (let key = 0; key <= 5; key++) {
          assert.ok(last.of(`${key}`) >= (positions.get(`${key}`) ?? 0));
          assert.ok(last.of(`${key}`) >= 10);
        }
        const newest = given.at(-1);
        if (newest !== undefined) assert.equal(last.of(`${newest}`), given.length + 10);
      }),
      { numRuns: 200 },
    );
  });

  it('returns, for a key that has not changed, the position from which all changes are known', () => {
    assert.equal(new LastChanges(10, plainCaches(manualClock()), { name: 'last', maxKeys: 3 }).of('key'), 10);
  });
});
