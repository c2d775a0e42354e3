import { type Static, Type } from 'typebox';
import type { ThumbnailRequest } from '../thumbnails/thumbnails.ts';

const pixels = Type.Integer({ minimum: 1 });

/** Query parameters of thumbnails, for clients and remote servers. */
export const thumbnailQuery = {
  width: pixels,
  height: pixels,
  method: Type.Union([Type.Literal('crop'), Type.Literal('scale')], { default: 'scale' }),
  animated: Type.Boolean({ default: false }),
};

const schema = Type.Object(thumbnailQuery);

/** Parsed parameters. */
export type ThumbnailQuery = Static<typeof schema>;

export const thumbnailRequestOf = ({
  width,
  height,
  method,
  animated,
}: ThumbnailQuery): ThumbnailRequest => ({
  width,
  height,
  method,
  isAnimated: animated,
});
