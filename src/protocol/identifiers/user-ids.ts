import { type LocalpartAndServer, splitAtServer } from './domain.ts';
import { fitsBytes } from './length.ts';
import type { ServerName } from './server-names.ts';

/** `@localpart:server` in the historical grammar, which events may hold. */
export type UserId = string & { readonly __brand: 'UserId' };

/**
 * Splits a user id; `undefined` if it is malformed. Accepts the historical grammar, because events may hold
 * it: any localpart without colon and NUL, even an empty one.
 * Source: appendices, "User Identifiers" and "Historical User IDs".
 */
export function parseUserId(text: string): LocalpartAndServer | undefined {
  return fitsBytes(text) ? splitAtServer(text, '@') : undefined;
}

/** Whether text is a user id in the historical grammar. */
export function isUserId(text: unknown): text is UserId {
  return typeof text === 'string' && parseUserId(text) !== undefined;
}

/**
 * Returns the server of a valid user id, for instance of the sender of an event; meaningless for other text.
 */
export function serverOfUser(userId: string): ServerName {
  return userId.slice(userId.indexOf(':') + 1) as ServerName;
}

/** Returns the localpart of a valid user id. */
export function localpartOf(userId: string): string {
  return userId.slice(1, userId.indexOf(':'));
}

const currentLocalpart = /^[a-z0-9._=/+-]+$/;
const printableLocalpart = /^[\x21-\x7e]+$/;

/** Whether a new account may have this localpart: `a-z`, `0-9` and `._=-/+`. */
export function isValidNewLocalpart(localpart: string): boolean {
  return currentLocalpart.test(localpart);
}

/**
 * Whether a user id may be sent to clients outside of events: its localpart is printable ASCII and not empty.
 * Source: appendices, "Historical User IDs", which calls other ids non-compliant.
 */
export function isCompliantUserId(text: unknown): text is UserId {
  if (typeof text !== 'string') return false;
  const parts = parseUserId(text);
  return parts !== undefined && printableLocalpart.test(parts.localpart);
}

/** Returns `@localpart:server`; `undefined` if a new account cannot have that id. */
export function newUserId(localpart: string, serverName: ServerName): UserId | undefined {
  const userId = `@${localpart}:${serverName}`;
  return isValidNewLocalpart(localpart) && fitsBytes(userId) ? (userId as UserId) : undefined;
}
