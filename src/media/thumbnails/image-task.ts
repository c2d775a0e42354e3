import type { Target } from './choose.ts';
import type { Image } from './image.ts';

/** Formats of thumbnails. */
export type ThumbnailFormat = 'jpeg' | 'png' | 'webp';

/** Tasks of the process that reads images. Paths are absolute. */
export type ImageTask =
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

export type ImageResult =
  | { readonly kind: 'image'; readonly image: Image }
  | { readonly kind: 'made' }
  /** The bytes are no readable image; `why` is the reason. */
  | { readonly kind: 'refused'; readonly why: string };
