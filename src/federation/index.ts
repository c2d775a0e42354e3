/** What other servers ask of this one. */
export { type FederationConfig, federationSection } from './config.ts';
export { type EduHandler, EduHandlers } from './edus/edu-handlers.ts';
export type { NotaryDeps } from './keys/notary.ts';
export { keyRoutes } from './keys/routes.ts';
export { federationMigrations } from './migrations.ts';
export { isInRoom, RoomAccess, type RoomAccessDeps } from './room-access.ts';
export type { Edu } from './sender/edu.ts';
export { EduOutbox } from './sender/edu-outbox.ts';
export { versionRoute } from './version-route.ts';
export { type WhitelistOptions, whitelistRoutes } from './whitelist-route.ts';
