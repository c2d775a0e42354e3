import type { Target } from './choose.ts';
import type { Picture } from './picture.ts';

/** The types that thumbnails are written as. */
export type ThumbnailFormat = 'jpeg' | 'png' | 'webp';

/** What the process that reads pictures is asked for. Paths are absolute. */
export type PictureTask =
  | { readonly kind: 'examine'; readonly source: string }
  | {
      readonly kind: 'make';
      readonly source: string;
      readonly destination: string;
      readonly target: Target;
      readonly format: ThumbnailFormat;
      /** Of all frames, or of the first. */
      readonly isAnimated: boolean;
      /** Of all frames that are read. */
      readonly maxPixels: number;
    };

export type PictureResult =
  | { readonly kind: 'picture'; readonly picture: Picture }
  | { readonly kind: 'made' }
  /** The bytes are no picture that can be read, and why. */
  | { readonly kind: 'refused'; readonly why: string };
