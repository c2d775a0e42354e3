import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { canonicalValue } from '../../../test/protocol/arbitrary.ts';
import { JsonScan } from './json-scan.ts';

describe('JsonScan', () => {
  /** Scans a text that arrives in chunks of `bytes` bytes. */
  const scanned = (text: string, bytes: number, bounds = {}) => {
    const scan = new JsonScan(bounds);
    const input = Buffer.from(text);
    for (let start = 0; start < input.length; start += bytes) scan.add(input.subarray(start, start + bytes));
    return scan;
  };

  it('counts depth and values in the same way however the bytes are divided (property)', () => {
    fc.assert(
      fc.property(canonicalValue, fc.integer({ min: 1, max: 7 }), (value, bytes) => {
        const text = JSON.stringify([value, '\\', '"[{,']);
        const [whole, parts] = [scanned(text, 1_000_000), scanned(text, bytes)];
        assert.deepEqual([parts.values, parts.maxDepth], [whole.values, whole.maxDepth]);
        assert.equal(whole.maxDepth, depthOf([value]));
        assert.equal(whole.bytes, Buffer.byteLength(text));
      }),
    );
  });

  it('rejects a string with more bytes than stringBytes, however the bytes are divided', () => {
    const text = JSON.stringify(['é'.repeat(49), '"'.repeat(49)]);
    for (const bytes of [1, 3, 64, 1_000]) {
      assert.equal(scanned(text, bytes, { stringBytes: 99 }).maxDepth, 1);
      assert.throws(() => scanned(text, bytes, { stringBytes: 98 }), { errcode: 'M_TOO_LARGE' });
    }
  });

  it('rejects a text as soon as it exceeds a bound', () => {
    const tooLarge = { errcode: 'M_TOO_LARGE', status: 413 };
    for (const [text, bounds] of [
      ['[1,2,3,4]', { values: 3 }],
      ['[[],{},[', { containers: 3 }],
      ['{"list":[{"a":1,"b":2,"c":3', { members: 2 }],
      ['{"list":[1,2,3', { items: 2 }],
    ] as const) {
      assert.throws(() => scanned(text, 1, bounds), tooLarge, text);
      assert.throws(() => scanned(text, 100, bounds), tooLarge, text);
    }
    scanned('{"list":[1,2,{"a":[1,2,3,4]}],"other":[1,2,3]}', 2, {
      values: 20,
      containers: 5,
      members: 2,
      items: 3,
    });
  });
});

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}
