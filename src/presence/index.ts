/** The presence of users. */

export { presenceMigrations } from './migrations.ts';
export { openPresence } from './open.ts';
export { Presence, type PresenceDeps, type PresentDevice } from './presence.ts';
export { PresenceEvents, type PresenceEventsDeps, type PresenceRequest } from './presence-events.ts';
export type { PresenceFact } from './presence-fact.ts';
export type { PresenceRouting } from './presence-routing.ts';
export { type PresenceState, type PresenceStatus, statusContent } from './presence-status.ts';
