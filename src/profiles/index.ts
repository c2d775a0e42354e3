/** Profiles: display names, avatars and other fields that users set for themselves. */

export { fieldOf } from './fields.ts';
export { listedProfile, readListedFields } from './listed-profiles.ts';
export { profileMigrations } from './migrations.ts';
export { openProfileRequests, openProfiles } from './open.ts';
export {
  type AvatarFiles,
  type ProfileChange,
  type ProfileOptions,
  Profiles,
  type ProfilesDeps,
  type RemoteProfiles,
} from './profiles.ts';
export { type ProfileAccessOptions, profileRoutes, type RoomSharing } from './routes.ts';
export type { ProfileTables } from './tables.ts';
