/** Pixels. */
export interface Size {
  readonly width: number;
  readonly height: number;
}

/** `crop` fills the size and cuts off what is over; `scale` fits the whole picture into it. */
export type Method = 'crop' | 'scale';

export interface ThumbnailSize extends Size {
  readonly method: Method;
}

/** How large a picture becomes; never larger than it is. Source: client-server API, "Thumbnails". */
export function sizeOf(picture: Size, { width, height, method }: ThumbnailSize): Size {
  const asked = { width, height };
  if (method === 'scale') return covers(asked, picture) ? picture : within(picture, asked);
  return covers(picture, asked) ? asked : within(asked, picture);
}

/** The largest size of the proportions of `shape` that fits into `frame`. */
function within(shape: Size, frame: Size): Size {
  const pixels = (value: number) => Math.max(1, Math.round(value));
  const isWide = shape.width * frame.height >= shape.height * frame.width;
  return isWide
    ? { width: frame.width, height: pixels((shape.height * frame.width) / shape.width) }
    : { width: pixels((shape.width * frame.height) / shape.height), height: frame.height };
}

/** Whether one is at least as large as the other, both ways. */
export const covers = (one: Size, other: Size) => one.width >= other.width && one.height >= other.height;

export const areaOf = ({ width, height }: Size) => width * height;
