import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatFileMode, parseFileMode } from './file-mode.ts';

test('permissions are octal, however they are marked', () => {
  for (const text of ['660', '0660', '0o660']) assert.equal(parseFileMode(text), 0o660, text);
  for (const text of ['', '66', '668', '1777', '0x1ff', '-660', 'rw-rw----'])
    assert.equal(parseFileMode(text), undefined, text);
});

test('permissions survive being written and read', () => {
  fc.assert(fc.property(fc.nat(0o777), (mode) => assert.equal(parseFileMode(formatFileMode(mode)), mode)));
});
