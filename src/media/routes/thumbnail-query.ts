import { type Static, Type } from 'typebox';
import type { AskedThumbnail } from '../thumbnails/thumbnails.ts';

const pixels = Type.Integer({ minimum: 1 });

/** What is asked of thumbnails, by clients and servers alike. */
export const thumbnailQuery = {
  width: pixels,
  height: pixels,
  method: Type.Union([Type.Literal('crop'), Type.Literal('scale')], { default: 'scale' }),
  animated: Type.Boolean({ default: false }),
};

const schema = Type.Object(thumbnailQuery);

/** These parameters, checked. */
export type ThumbnailQuery = Static<typeof schema>;

export const askedThumbnail = ({ width, height, method, animated }: ThumbnailQuery): AskedThumbnail => ({
  width,
  height,
  method,
  isAnimated: animated,
});
