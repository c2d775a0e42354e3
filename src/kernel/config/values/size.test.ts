import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatSize, parseSize, sizePattern } from './size.ts';

test('parseSize reads units as powers of 1024, with or without iB', () => {
  const expected: Record<string, number> = {
    '0': 0,
    '1024': 1024,
    '10K': 10_240,
    '10M': 10_485_760,
    '32M': 33_554_432,
    '50M': 52_428_800,
    '500MiB': 524_288_000,
    '87KiB': 89_088,
    '1G': 1_073_741_824,
    '2TiB': 2_199_023_255_552,
  };
  for (const [text, size] of Object.entries(expected)) assert.equal(parseSize(text), size, text);
});

test('parseSize rejects texts that are not sizes', () => {
  for (const text of [
    '',
    '10k',
    '10KB',
    '10 M',
    '-1',
    '1.5M',
    'M',
    '10m',
    '1e3',
    '0x10',
    '10Mi',
    `${'9'.repeat(13)}M`,
  ]) {
    assert.equal(parseSize(text), undefined, text);
  }
});

test('parseSize reads every size that formatSize writes', () => {
  fc.assert(
    fc.property(fc.nat(Number.MAX_SAFE_INTEGER), (size) => assert.equal(parseSize(formatSize(size)), size)),
  );
});

test('parseSize accepts only texts that match the published pattern', () => {
  const pattern = new RegExp(sizePattern, 'u');
  const text = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'0123456789KMGTiB ') }));
  fc.assert(
    fc.property(text, (candidate) => {
      const value = parseSize(candidate);
      if (value !== undefined) assert.ok(Number.isSafeInteger(value) && pattern.test(candidate));
    }),
  );
});
