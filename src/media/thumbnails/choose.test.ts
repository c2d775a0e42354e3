import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { chooseTarget, type Target, type ThumbnailOptions } from './choose.ts';
import type { Image } from './image.ts';
import { covers, type Method, type Size, sizeOf } from './sizes.ts';

const defaultOptions: ThumbnailOptions = {
  dynamic_thumbnails: false,
  thumbnail_sizes: [
    { width: 32, height: 32, method: 'crop' },
    { width: 96, height: 96, method: 'crop' },
    { width: 320, height: 240, method: 'scale' },
    { width: 640, height: 480, method: 'scale' },
    { width: 800, height: 600, method: 'scale' },
  ],
};

const imageOf = ({ width, height }: Size): Image => ({
  format: 'png',
  width,
  height,
  frames: 1,
  isAnimated: false,
  hasAlpha: false,
  isTurned: false,
});

const textOf = (target: Target | undefined) =>
  target === undefined ? 'whole' : `${target.width}x${target.height} ${target.method}`;

describe('chooseTarget', () => {
  const chosen = (image: Size, width: number, height: number, method: Method, options = defaultOptions) =>
    textOf(chooseTarget(imageOf(image), { width, height, method }, options));
  const photograph = { width: 4_000, height: 3_000 };

  it('returns the smallest size of the list that is large enough', () => {
    assert.equal(chosen(photograph, 1, 1, 'scale'), '320x240 scale');
    assert.equal(chosen(photograph, 320, 240, 'scale'), '320x240 scale');
    assert.equal(chosen(photograph, 321, 241, 'scale'), '640x480 scale');
    assert.equal(chosen(photograph, 800, 9_000, 'scale'), '800x600 scale');
    assert.equal(chosen(photograph, 16, 32, 'crop'), '32x32 crop');
    assert.equal(chosen(photograph, 16, 33, 'crop'), '96x96 crop');
  });

  it('doubles the largest size of the list until it is large enough', () => {
    assert.equal(chosen(photograph, 801, 601, 'scale'), '1600x1200 scale');
    assert.equal(chosen(photograph, 1_601, 1_601, 'scale'), '3200x2400 scale');
    assert.equal(chosen(photograph, 3_201, 3_201, 'scale'), 'whole');
    assert.equal(chosen(photograph, 288, 288, 'crop'), '384x384 crop');
    // The image contains no square of this width.
    assert.equal(chosen(photograph, 3_500, 10, 'crop'), 'whole');
  });

  it('returns a size for scale when crop is requested and the list has none for crop, and no size when scale is requested and the list has none for scale', () => {
    const [crops, scales] = (['crop', 'scale'] as const).map((method) => ({
      ...defaultOptions,
      thumbnail_sizes: defaultOptions.thumbnail_sizes.filter((size) => size.method === method),
    }));
    assert.equal(chosen(photograph, 100, 100, 'crop', scales), '320x240 scale');
    assert.equal(chosen(photograph, 100, 100, 'scale', crops), 'whole');
  });

  it('returns no size, which stands for the image itself, when the image is smaller than requested', () => {
    assert.equal(chosen({ width: 60, height: 40 }, 60, 40, 'crop'), 'whole');
    assert.equal(chosen({ width: 60, height: 40 }, 90, 90, 'scale'), 'whole');
    assert.equal(chosen({ width: 300, height: 40 }, 90, 90, 'scale'), 'whole');
    assert.equal(chosen({ width: 300, height: 40 }, 90, 90, 'crop'), '40x40 crop');
  });

  const pixels = fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 20_000 }));
  const size = fc.record({ width: pixels, height: pixels });
  const methods = fc.constantFrom<Method>('crop', 'scale');
  const anyRequest = fc.record({ width: pixels, height: pixels, method: methods });

  it('returns a size that is never smaller than requested, and never larger than the image', () => {
    const lists = fc.oneof(
      fc.constant(defaultOptions.thumbnail_sizes),
      fc.array(anyRequest, { maxLength: 6 }),
    );
    fc.assert(
      fc.property(
        size,
        anyRequest,
        lists,
        fc.boolean(),
        (image, request, thumbnail_sizes, dynamic_thumbnails) => {
          const options = { thumbnail_sizes, dynamic_thumbnails };
          const target = chooseTarget(imageOf(image), request, options) ?? { ...image, method: 'scale' };
          const wanted = sizeOf(image, request);
          assert.ok(covers(target, wanted), `${textOf(target)} for ${JSON.stringify(wanted)}`);
          assert.ok(covers(image, target), `${textOf(target)} of ${JSON.stringify(image)}`);
          assert.ok(target.width >= 1 && target.height >= 1);
          if (dynamic_thumbnails && !covers(request, image)) {
            assert.deepEqual({ width: target.width, height: target.height }, wanted);
          }
          // A request beyond the size of the image returns the image.
          const largest = { width: 1e15, height: 1e15, method: request.method };
          assert.equal(chooseTarget(imageOf(image), largest, options), undefined);
        },
      ),
    );
  });

  it('returns few different sizes, whatever is requested', () => {
    const returnedSizes = new Set<string>();
    const image = { width: 8_000, height: 4_000 };
    fc.assert(
      fc.property(anyRequest, (request) => {
        returnedSizes.add(textOf(chooseTarget(imageOf(image), request, defaultOptions)));
      }),
      { numRuns: 2_000 },
    );
    // The five sizes of the list, at most six doubled sizes for crop and four for scale, and the whole image.
    assert.ok(returnedSizes.size <= 5 + 6 + 4 + 1, [...returnedSizes].join());
  });
});
