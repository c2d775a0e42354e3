/** The media repository: uploads, downloads, and copies of the media of other servers. */
export { mediaMigrations } from './migrations.ts';
export { type MediaSlice, type MediaSliceDeps, openMediaRepository } from './open.ts';
export type { MediaAnswer, MediaRequest, MediaServers } from './remote/media-servers.ts';
export { outOfTime, tooLargeElsewhere } from './remote/remote-media.ts';
