/** The media repository: uploads, downloads, and copies of remote media. */

export { reportMedia } from './metrics.ts';
export { mediaMigrations } from './migrations.ts';
export type { MediaDetails, MediaModeration } from './moderation/media-moderation.ts';
export { type MediaSlice, type MediaSliceDeps, openMediaRepository } from './open.ts';
export { type MoveProgress, moveMedia } from './providers/move-media.ts';
export { openProviders } from './providers/open-providers.ts';
export type { FileToStore, StorageProvider } from './providers/storage-provider.ts';
export type { MediaRequest, MediaResponse as MediaAnswer, MediaServers } from './remote/media-servers.ts';
export {
  remoteMediaTooLarge,
  responseTimedOut,
} from './remote/remote-media.ts';
export type { MediaTables } from './tables.ts';
