import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatFileMode, parseFileMode } from './file-mode.ts';

test('parseFileMode reads octal permissions in all three notations and rejects texts that are not file modes', () => {
  for (const text of ['660', '0660', '0o660']) assert.equal(parseFileMode(text), 0o660, text);
  for (const text of ['', '66', '668', '1777', '0x1ff', '-660', 'rw-rw----'])
    assert.equal(parseFileMode(text), undefined, text);
});

test('parseFileMode reads every mode that formatFileMode writes', () => {
  fc.assert(fc.property(fc.nat(0o777), (mode) => assert.equal(parseFileMode(formatFileMode(mode)), mode)));
});
