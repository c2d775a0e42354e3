import type { Target } from './choose.ts';
import type { Picture } from './picture.ts';

/** Formats of thumbnails. */
export type ThumbnailFormat = 'jpeg' | 'png' | 'webp';

/** Tasks of the process that reads pictures. Paths are absolute. */
export type PictureTask =
  | { readonly kind: 'examine'; readonly source: string }
  | {
      readonly kind: 'make';
      readonly source: string;
      readonly destination: string;
      readonly target: Target;
      readonly format: ThumbnailFormat;
      /** Number of frames: all, or the first. */
      readonly isAnimated: boolean;
      /** Of all frames that are read. */
      readonly maxPixels: number;
    };

export type PictureResult =
  | { readonly kind: 'picture'; readonly picture: Picture }
  | { readonly kind: 'made' }
  /** The bytes are no readable picture; `why` is the reason. */
  | { readonly kind: 'refused'; readonly why: string };
