import { type LocalpartAndServer, splitAtServer } from './domain.ts';
import { fitsBytes } from './length.ts';
import type { ServerName } from './server-names.ts';

/** `@localpart:server`, in the historical grammar: what any event may hold. */
export type UserId = string & { readonly __brand: 'UserId' };

/**
 * The parts of a user id, or `undefined`. Accepts the historical grammar, as events must be: any localpart without
 * colon and NUL, even an empty one.
 * Source: appendices, "User Identifiers" and "Historical User IDs".
 */
export function parseUserId(text: string): LocalpartAndServer | undefined {
  return fitsBytes(text) ? splitAtServer(text, '@') : undefined;
}

export function isUserId(text: unknown): text is UserId {
  return typeof text === 'string' && parseUserId(text) !== undefined;
}

/**
 * The server of a user id. For ids that were checked already, such as the sender of an event; for other text the
 * result means nothing.
 */
export function serverOfUser(userId: string): ServerName {
  return userId.slice(userId.indexOf(':') + 1) as ServerName;
}

/** The localpart of a user id that was checked already. */
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
 * Whether a user id is fit to be told to clients outside of events: its localpart is printable ASCII and not
 * empty. Source: appendices, "Historical User IDs" (what is not, is "non-compliant").
 */
export function isCompliantUserId(text: unknown): text is UserId {
  if (typeof text !== 'string') return false;
  const parts = parseUserId(text);
  return parts !== undefined && printableLocalpart.test(parts.localpart);
}

/** `@localpart:server`, or `undefined` if a new account can not have that id. */
export function newUserId(localpart: string, serverName: ServerName): UserId | undefined {
  const userId = `@${localpart}:${serverName}`;
  return isValidNewLocalpart(localpart) && fitsBytes(userId) ? (userId as UserId) : undefined;
}
