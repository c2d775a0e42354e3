import type { Image } from './image.ts';
import { areaOf, covers, type Method, type Size, sizeOf, type ThumbnailSize } from './sizes.ts';

export interface ThumbnailOptions {
  readonly dynamic_thumbnails: boolean;
  readonly thumbnail_sizes: readonly ThumbnailSize[];
}

/** The final size of a thumbnail; images are never enlarged. */
export interface Target extends Size {
  readonly method: Method;
}

/**
 * Chooses the thumbnail for a request: never smaller than requested, unless the image is smaller. `undefined` stands for
 * the image in its own size.
 * Source: client-server API, "Thumbnails".
 */
export function chooseTarget(
  image: Image,
  request: ThumbnailSize,
  { dynamic_thumbnails, thumbnail_sizes }: ThumbnailOptions,
): Target | undefined {
  if (covers(request, image)) return undefined;
  const exactTarget = targetOf(image, request);
  if (dynamic_thumbnails) return exactTarget;
  const largeEnough = (method: Method, sizes: readonly ThumbnailSize[]) =>
    sizes
      .filter((size) => size.method === method)
      .map((size) => targetOf(image, size))
      .filter((target) => covers(target, exactTarget));
  const { method } = request;
  const target =
    nearest(exactTarget, largeEnough(method, thumbnail_sizes)) ??
    nearest(exactTarget, largeEnough(method, larger(image, method, thumbnail_sizes))) ??
    nearest(exactTarget, largeEnough('scale', thumbnail_sizes));
  return target === undefined || isWhole(image, target) ? undefined : target;
}

/** Returns the target of this size for an image. */
export function targetOf(image: Size, size: ThumbnailSize): Target {
  const { width, height } = sizeOf(image, size);
  return { width, height, method: size.method };
}

/** Reports whether the target has the full size of the image. */
export const isWhole = (image: Size, target: Target) => covers(target, image);

/** Returns the smallest target; for crops, the smallest of the targets whose proportions are nearest to `wanted`. */
function nearest(wanted: Size, targets: readonly Target[]): Target | undefined {
  const stretch = ({ width, height, method }: Target) =>
    method === 'scale' ? 0 : Math.abs(Math.log((width * wanted.height) / (height * wanted.width)));
  return targets.toSorted((a, b) => stretch(a) - stretch(b) || areaOf(a) - areaOf(b))[0];
}

/**
 * Returns further sizes: each is twice the size before it, beginning at the largest size of the list, and the last one
 * covers the image. Requests for large sizes then need few different thumbnails (decision 0118).
 */
function larger(image: Size, method: Method, sizes: readonly ThumbnailSize[]): ThumbnailSize[] {
  const last = sizes
    .filter((size) => size.method === method)
    .toSorted((a, b) => areaOf(a) - areaOf(b))
    .at(-1);
  const doubled: ThumbnailSize[] = [];
  for (let size = last; size !== undefined && !covers(size, image); ) {
    size = { width: size.width * 2, height: size.height * 2, method };
    doubled.push(size);
  }
  return doubled;
}
