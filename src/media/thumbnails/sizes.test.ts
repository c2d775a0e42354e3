import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Method, type Size, sizeOf } from './sizes.ts';

describe('sizeOf', () => {
  const sized = (image: Size, width: number, height: number, method: Method) => {
    const size = sizeOf(image, { width, height, method });
    return `${size.width}x${size.height}`;
  };

  it('returns a size with the proportions of the image for scale, and with the requested proportions for crop', () => {
    const wide = { width: 1_000, height: 500 };
    assert.equal(sized(wide, 100, 100, 'scale'), '100x50');
    assert.equal(sized(wide, 500, 100, 'scale'), '200x100');
    assert.equal(sized(wide, 2_000, 2_000, 'scale'), '1000x500');
    assert.equal(sized(wide, 100, 100, 'crop'), '100x100');
    assert.equal(sized(wide, 2_000, 2_000, 'crop'), '500x500');
    assert.equal(sized(wide, 100, 1_000, 'crop'), '50x500');
    assert.equal(sized({ width: 1, height: 9_000 }, 32, 32, 'scale'), '1x32');
    assert.equal(sized({ width: 1, height: 9_000 }, 9_000, 1, 'crop'), '1x1');
  });
});
