/** Previews of URLs: what pages say about themselves, with a copy of an image. */

export type { UrlPreviewsConfig } from './config.ts';
export { openUrlPreviews, type UrlPreviewDeps, type UrlPreviewsSlice } from './open.ts';
