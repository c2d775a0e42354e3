/** A size in pixels. */
export interface Size {
  readonly width: number;
  readonly height: number;
}

/** `crop` fills the size and cuts off the rest; `scale` fits the whole image into it. */
export type Method = 'crop' | 'scale';

export interface ThumbnailSize extends Size {
  readonly method: Method;
}

/**
 * Returns the size of a thumbnail; never larger than the image. Source: client-server API, "Thumbnails".
 */
export function sizeOf(image: Size, { width, height, method }: ThumbnailSize): Size {
  const requested = { width, height };
  if (method === 'scale') return covers(requested, image) ? image : within(image, requested);
  return covers(image, requested) ? requested : within(requested, image);
}

/** Returns the largest size with the proportions of `shape` that fits into `frame`. */
function within(shape: Size, frame: Size): Size {
  const pixels = (value: number) => Math.max(1, Math.round(value));
  const isWide = shape.width * frame.height >= shape.height * frame.width;
  return isWide
    ? { width: frame.width, height: pixels((shape.height * frame.width) / shape.width) }
    : { width: pixels((shape.width * frame.height) / shape.height), height: frame.height };
}

/** Reports whether the first size is at least as wide and as high as the second. */
export const covers = (first: Size, second: Size) =>
  first.width >= second.width && first.height >= second.height;

export const areaOf = ({ width, height }: Size) => width * height;
