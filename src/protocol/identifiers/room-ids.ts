import { type LocalpartAndServer, splitAtServer } from './domain.ts';
import { fitsBytes } from './length.ts';
import type { ServerName } from './server-names.ts';

/** `!opaque:server`, or `!hash` in room version 12 and later. */
export type RoomId = string & { readonly __brand: 'RoomId' };

/** `#alias:server`. */
export type RoomAlias = string & { readonly __brand: 'RoomAlias' };

export interface RoomIdParts {
  readonly opaqueId: string;
  /** `undefined` since room version 12. Only a namespace: the server need not be in the room. */
  readonly serverName: ServerName | undefined;
}

const domainless = /^![^:\0]+$/;
const hashed = /^![A-Za-z0-9_-]{43}$/;

/**
 * Splits a room id; `undefined` if it is malformed. Without a domain any text is accepted, because the room
 * version decides which text is a hash.
 * Source: appendices, "Room IDs".
 */
export function parseRoomId(text: string): RoomIdParts | undefined {
  if (!fitsBytes(text)) return undefined;
  const parts = splitAtServer(text, '!');
  if (parts !== undefined) return { opaqueId: parts.localpart, serverName: parts.serverName };
  if (!domainless.test(text) || !text.isWellFormed()) return undefined;
  return { opaqueId: text.slice(1), serverName: undefined };
}

/** Whether text is a room id of any room version. */
export function isRoomId(text: unknown): text is RoomId {
  return typeof text === 'string' && parseRoomId(text) !== undefined;
}

/** Whether a room id has the form of room version 12 and later: a hash in URL-safe base64. */
export function isHashRoomId(text: unknown): text is RoomId {
  return typeof text === 'string' && hashed.test(text);
}

/** Splits a room alias; `undefined` if it is malformed. Source: appendices, "Room Aliases". */
export function parseRoomAlias(text: string): LocalpartAndServer | undefined {
  return fitsBytes(text) ? splitAtServer(text, '#') : undefined;
}

/** Whether text is a room alias. */
export function isRoomAlias(text: unknown): text is RoomAlias {
  return typeof text === 'string' && parseRoomAlias(text) !== undefined;
}
