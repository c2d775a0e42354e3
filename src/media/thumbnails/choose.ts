import type { Picture } from './picture.ts';
import { areaOf, covers, type Method, type Size, sizeOf, type ThumbnailSize } from './sizes.ts';

export interface ThumbnailOptions {
  readonly dynamic_thumbnails: boolean;
  readonly thumbnail_sizes: readonly ThumbnailSize[];
}

/** A thumbnail to be made, with its final size; nothing is enlarged. */
export interface Target extends Size {
  readonly method: Method;
}

/**
 * Chooses the thumbnail for a request: never smaller than requested, unless the picture is. `undefined`
 * stands for the picture in its own size.
 * Source: client-server API, "Thumbnails".
 */
export function chooseTarget(
  picture: Picture,
  asked: ThumbnailSize,
  { dynamic_thumbnails, thumbnail_sizes }: ThumbnailOptions,
): Target | undefined {
  if (covers(asked, picture)) return undefined;
  const wanted = targetOf(picture, asked);
  if (dynamic_thumbnails) return wanted;
  const largeEnough = (method: Method, sizes: readonly ThumbnailSize[]) =>
    sizes
      .filter((size) => size.method === method)
      .map((size) => targetOf(picture, size))
      .filter((target) => covers(target, wanted));
  const { method } = asked;
  const found =
    nearest(wanted, largeEnough(method, thumbnail_sizes)) ??
    nearest(wanted, largeEnough(method, larger(picture, method, thumbnail_sizes))) ??
    nearest(wanted, largeEnough('scale', thumbnail_sizes));
  return found === undefined || isWhole(picture, found) ? undefined : found;
}

/** Returns the target of this size for a picture. */
export function targetOf(picture: Size, size: ThumbnailSize): Target {
  const { width, height } = sizeOf(picture, size);
  return { width, height, method: size.method };
}

/** Whether the target has the full size of the picture. */
export const isWhole = (picture: Size, target: Target) => covers(target, picture);

/** Returns the smallest target; for crops, among those of the nearest proportions. */
function nearest(wanted: Size, targets: readonly Target[]): Target | undefined {
  const stretch = ({ width, height, method }: Target) =>
    method === 'scale' ? 0 : Math.abs(Math.log((width * wanted.height) / (height * wanted.width)));
  return targets.toSorted((a, b) => stretch(a) - stretch(b) || areaOf(a) - areaOf(b))[0];
}

/**
 * Doubles the largest size of the list up to the size of the picture, so that requests for larger sizes are
 * answered with few different thumbnails: see decision 0118.
 */
function larger(picture: Size, method: Method, sizes: readonly ThumbnailSize[]): ThumbnailSize[] {
  const last = sizes
    .filter((size) => size.method === method)
    .toSorted((a, b) => areaOf(a) - areaOf(b))
    .at(-1);
  const found: ThumbnailSize[] = [];
  for (let size = last; size !== undefined && !covers(size, picture); ) {
    size = { width: size.width * 2, height: size.height * 2, method };
    found.push(size);
  }
  return found;
}
