/** Who may put which event into a room: the authorization rules of every room version. */
export * from './auth-events-list.ts';
export * from './authorize.ts';
export { powerLevelsFlaw } from './power-levels-change.ts';
export type { StateLookup } from './room-state.ts';
export { type AuthEventSubject, selectAuthEventKeys } from './select-auth-events.ts';
export type { IsSignedBy } from './server-signatures.ts';
export type { Verdict } from './verdict.ts';
