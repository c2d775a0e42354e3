import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  compileFileNamePattern,
  compileGlob,
  compileRegularExpression,
  isRegularExpression,
} from './patterns.ts';

test('a glob matches a whole text, and only its stars and question marks are special', () => {
  const matches = (pattern: string, text: string) => compileGlob(pattern)(text);
  assert.ok(matches('*', ''));
  assert.ok(matches('@*:example.org', '@alice:example.org'));
  assert.ok(!matches('@*:example.org', '@alice:example.org.evil'));
  assert.ok(!matches('@*:example.org', '@alice:exampleXorg'));
  assert.ok(matches('a?c', 'a\u{1f600}c'));
  assert.ok(!matches('a?c', 'ac'));
  assert.ok(matches('[a](b)$', '[a](b)$'));
  assert.ok(matches('a*b', 'a\nb'));
});

test('a text without wildcards matches itself as a glob, and nothing else', () => {
  const text = fc.string().filter((candidate) => !/[*?]/.test(candidate));
  fc.assert(
    fc.property(text, fc.string(), (pattern, other) => {
      assert.equal(compileGlob(pattern)(pattern), true);
      assert.equal(compileGlob(pattern)(other), pattern === other);
    }),
  );
});

test('a pattern for file names has sets of characters, too', () => {
  const matches = (pattern: string, text: string) => compileFileNamePattern(pattern)(text);
  assert.ok(matches('*.example.[co]??', 'www.example.com'));
  assert.ok(matches('[!a-c]x', 'dx'));
  assert.ok(!matches('[!a-c]x', 'bx'));
  assert.ok(matches('[]]', ']'));
  assert.ok(matches('[', '['));
  assert.ok(matches('[^a]', '^'));
  assert.ok(matches('[a\\]', '\\'));
});

test('any text is a pattern for file names', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (pattern, text) => {
      assert.equal(typeof compileFileNamePattern(pattern)(text), 'boolean');
    }),
  );
});

test('a regular expression matches from the beginning', () => {
  assert.ok(compileRegularExpression('a+')('aab'));
  assert.ok(!compileRegularExpression('a+')('baa'));
});

test('a regular expression that makes others hang is matched at once', () => {
  const matcher = compileRegularExpression('^(a+)+$');
  const start = process.hrtime.bigint();
  assert.equal(matcher(`${'a'.repeat(50_000)}b`), false);
  assert.ok(process.hrtime.bigint() - start < 5_000_000_000n);
});

test('what cannot be matched in linear time is no regular expression', () => {
  for (const pattern of ['(a)\\1', '(?=a)b', '(', '[', 'a{2,1}'])
    assert.equal(isRegularExpression(pattern), false, pattern);
});
