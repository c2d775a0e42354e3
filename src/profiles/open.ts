import { type ProfileOptions, Profiles, type ProfilesDeps } from './profiles.ts';
import { type ProfileAccessOptions, profileRoutes, type RoomSharing } from './routes.ts';

/** Opens profiles. The server opens them together with the accounts, before the rooms. */
export function openProfiles(deps: ProfilesDeps, options: ProfileOptions) {
  const profiles = new Profiles(deps, options);
  return { profiles, streams: [profiles.profileStream] };
}

/**
 * Opens the routes for profiles. They need the rooms, because an option shows profiles only to users who share a room.
 */
export const openProfileRequests = (
  profiles: Profiles,
  rooms: RoomSharing,
  options: ProfileAccessOptions,
) => ({ routes: profileRoutes({ profiles, rooms }, options) });
