/** URL previews: the metadata of web pages, with a copy of one image. */

export type { UrlPreviewsConfig } from './config.ts';
export { openUrlPreviews, type UrlPreviewDeps, type UrlPreviewsSlice } from './open.ts';
