/** Profiles: what users say about themselves. */
export { profileMigrations } from './migrations.ts';
export {
  type AvatarFiles,
  type ProfileChange,
  type ProfileOptions,
  Profiles,
  type ProfilesDeps,
  type RemoteProfiles,
} from './profiles.ts';
export {
  type ProfileAccessOptions,
  type ProfileRoutesDeps,
  profileRoutes,
  type RoomSharing,
} from './routes.ts';
