import type { Target } from './choose.ts';
import type { Image } from './image.ts';

/** Formats of thumbnails. */
export type ThumbnailFormat = 'jpeg' | 'png' | 'webp';

/** A task of the process that reads images. Paths are absolute. */
export type ImageTask =
  | { readonly kind: 'examine'; readonly source: string }
  | {
      readonly kind: 'make';
      readonly source: string;
      readonly destination: string;
      readonly target: Target;
      readonly format: ThumbnailFormat;
      /** Whether all frames are read, or only the first frame. */
      readonly isAnimated: boolean;
      /** Maximum number of pixels of all frames that are read. */
      readonly maxPixels: number;
    };

export type ImageResult =
  | { readonly kind: 'image'; readonly image: Image }
  | { readonly kind: 'made' }
  /** The bytes are not a readable image; `why` is the reason. */
  | { readonly kind: 'refused'; readonly why: string };
