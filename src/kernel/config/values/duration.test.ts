import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { durationPattern, formatDuration, parseDuration } from './duration.ts';

test('parseDuration returns milliseconds', () => {
  const expected: Record<string, number> = {
    '0': 0,
    '250': 250,
    '500ms': 500,
    '0.5s': 500,
    '0s': 0,
    '1s': 1000,
    '30s': 30_000,
    '1m': 60_000,
    '10m': 600_000,
    '1h': 3_600_000,
    '24h': 86_400_000,
    '7d': 604_800_000,
    '28d': 2_419_200_000,
    '1w': 604_800_000,
    '1y': 31_536_000_000,
    '1.1s': 1100,
    '0.3s': 300,
    infinity: Number.POSITIVE_INFINITY,
  };
  for (const [text, milliseconds] of Object.entries(expected))
    assert.equal(parseDuration(text), milliseconds, text);
});

test('parseDuration rejects texts that are not durations', () => {
  const texts = [
    '',
    ' 1s',
    '1 s',
    '1S',
    '1M',
    '-1s',
    '+1s',
    '1.5',
    '.5s',
    '1.s',
    '1h30m',
    's',
    '1e3',
    '0x10',
    'inf',
    '∞',
  ];
  for (const text of [...texts, '0.0001s', '9'.repeat(20), `${'9'.repeat(12)}y`]) {
    assert.equal(parseDuration(text), undefined, text);
  }
});

test('parseDuration reads every duration that formatDuration writes', () => {
  fc.assert(
    fc.property(fc.nat(Number.MAX_SAFE_INTEGER), (milliseconds) => {
      assert.equal(parseDuration(formatDuration(milliseconds)), milliseconds);
    }),
  );
  assert.equal(formatDuration(Number.POSITIVE_INFINITY), 'infinity');
});

test('parseDuration multiplies amount and unit exactly, with or without a fraction', () => {
  const units = fc.constantFrom(['s', 1000], ['m', 60_000], ['h', 3_600_000], ['d', 86_400_000] as const);
  fc.assert(
    fc.property(fc.nat(10_000), fc.nat(9), units, (whole, tenth, [unit, size]) => {
      assert.equal(parseDuration(`${whole}${unit}`), whole * Number(size));
      assert.equal(parseDuration(`${whole}.${tenth}${unit}`), (whole * 10 + tenth) * (Number(size) / 10));
    }),
  );
});

test('parseDuration accepts only texts that match the published pattern', () => {
  const pattern = new RegExp(durationPattern, 'u');
  const text = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'0123456789.smhdwy- ') }));
  fc.assert(
    fc.property(text, (candidate) => {
      const value = parseDuration(candidate);
      if (value !== undefined) assert.ok(value >= 0 && pattern.test(candidate));
    }),
  );
});
