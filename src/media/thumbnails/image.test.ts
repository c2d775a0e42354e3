import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { testImage } from '../../../test/support/inputs/images.ts';
import { formatOf, imageFormats, readImage } from './image.ts';

describe('formatOf and readImage', () => {
  it('formatOf recognizes the format by the first bytes', async () => {
    for (const format of imageFormats) assert.equal(formatOf(await testImage(9, 9, format)), format);
    for (const text of [
      '',
      'GIF',
      'GIF88a',
      '<svg',
      'RIFFxxxxWAVE',
      'xxxxftypheic',
      '%PDF-1.7',
      ' \x89PNG',
    ]) {
      assert.equal(formatOf(Buffer.from(text, 'latin1')), undefined, text);
    }
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        const format = formatOf(bytes);
        assert.ok(format === undefined || imageFormats.includes(format));
      }),
    );
  });

  it('readImage restores stored properties, and rejects malformed properties', () => {
    const properties = fc.record({
      format: fc.constantFrom(...imageFormats),
      width: fc.integer({ min: 1, max: 2 ** 31 }),
      height: fc.integer({ min: 1, max: 2 ** 31 }),
      frames: fc.integer({ min: 1, max: 10_000 }),
      isAnimated: fc.boolean(),
      hasAlpha: fc.boolean(),
      isTurned: fc.boolean(),
    });
    fc.assert(
      fc.property(
        properties,
        fc.string(),
        fc.jsonValue(),
        fc.constantFrom('width', 'format', 'frames', 'isTurned'),
        (image, text, value, key) => {
          assert.deepEqual(readImage(JSON.stringify(image)), { ...image });
          assert.equal(readImage(text), undefined);
          assert.equal(readImage(JSON.stringify(value)), undefined);
          assert.equal(readImage(JSON.stringify({ ...image, [key]: [] })), undefined);
          assert.equal(readImage(JSON.stringify({ ...image, width: 0 })), undefined);
        },
      ),
    );
  });
});
