import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { duplicateAnnotation } from './annotations.ts';

describe('duplicateAnnotation', () => {
  it('returns the error M_DUPLICATE_ANNOTATION with status 400', () => {
    const { status, errcode } = duplicateAnnotation();
    assert.deepEqual([status, errcode], [400, 'M_DUPLICATE_ANNOTATION']);
  });
});
