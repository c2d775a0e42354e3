import type { RoomVersion } from '../room-versions.ts';
import { splitAtServer } from './domain.ts';
import { fitsBytes } from './length.ts';
import type { ServerName } from './server-names.ts';

/** `$opaque:server` in room versions 1 and 2, `$hash` in later ones. */
export type EventId = string & { readonly __brand: 'EventId' };

const anyId = /^\$[^\0]+$/;
const base64Hash = /^\$[A-Za-z0-9+/]{43}$/;
const base64UrlHash = /^\$[A-Za-z0-9_-]{43}$/;

/** Whether text could be an event id in some room version. Source: appendices, "Event IDs". */
export function isEventId(text: unknown): text is EventId {
  return typeof text === 'string' && anyId.test(text) && fitsBytes(text) && text.isWellFormed();
}

/** Whether text is a valid event id of that room version. */
export function isEventIdOf(version: RoomVersion, text: unknown): text is EventId {
  if (typeof text !== 'string') return false;
  switch (version.eventId) {
    case 'origin':
      return fitsBytes(text) && splitAtServer(text, '$') !== undefined;
    case 'hash, base64':
      return base64Hash.test(text);
    case 'hash, base64url':
      return base64UrlHash.test(text);
  }
}

/** Returns the server in an event id of room versions 1 and 2; `undefined` for a hash. */
export function serverOfEventId(text: string): ServerName | undefined {
  return splitAtServer(text, '$')?.serverName;
}
