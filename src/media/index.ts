/** The media repository: uploads, downloads, and copies of remote media. */

export { previewImageShare } from './local/preview-images.ts';
export type { MediaRepositoryRules } from './media-rules.ts';
export { reportMedia, storedMediaBytes } from './metrics.ts';
export { mediaMigrations } from './migrations.ts';
export type { MediaDetails } from './moderation/media-details.ts';
export type { MediaModeration } from './moderation/media-moderation.ts';
export { type MediaSlice, type MediaSliceDeps, openMediaRepository } from './open.ts';
export { type MoveProgress, moveMedia } from './providers/move-media.ts';
export { openProviders } from './providers/open-providers.ts';
export type { FileToStore, StorageProvider } from './providers/storage-provider.ts';
export type { MediaRequest, MediaResponse, MediaServers } from './remote/media-servers.ts';
export { remoteMediaTooLarge, responseTimedOut } from './remote/remote-media.ts';
export type { MediaTables } from './tables.ts';
