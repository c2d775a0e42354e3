/** The authorization rules of every room version: which events are allowed in a room. */

export * from './authorize.ts';
export * from './check-auth-events.ts';
export { ownerOfStateKey } from './owned-state.ts';
export { powerLevelsContentError } from './power-levels-change.ts';
export type { StateLookup } from './room-state.ts';
export { type AuthEventSubject, selectAuthEventKeys } from './select-auth-events.ts';
export type { IsSignedBy } from './server-signatures.ts';
export type { Verdict } from './verdict.ts';
