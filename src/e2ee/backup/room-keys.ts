import { invalidParam, isJsonObject, isRoomId, type JsonObject, tooLarge } from '../../protocol/index.ts';

/** The encrypted key of a Megolm session, and what is known of it. */
export interface BackedUpKey {
  readonly firstMessageIndex: number;
  readonly forwardedCount: number;
  readonly isVerified: boolean;
  /** As JSON. */
  readonly sessionData: string;
}

/** A key with the room and session that it is for. */
export interface SessionKey extends BackedUpKey {
  readonly roomId: string;
  readonly sessionId: string;
}

/** Characters of a session id, and UTF-16 units of the encrypted key of a session; real ones have about 800. */
const [longestId, largestData] = [255, 65_536];

/**
 * Reads room id to `{sessions}` to session id to key.
 * Source: client-server API, `PUT /room_keys/keys`.
 * @throws MatrixError M_INVALID_PARAM, M_TOO_LARGE
 */
export function parseRooms(rooms: JsonObject): SessionKey[] {
  return Object.entries(rooms).flatMap(([roomId, room]) => {
    if (!isJsonObject(room)) throw invalidParam(`The keys of ${roomId} must be an object`);
    return parseRoom(roomId, room);
  });
}

/** Reads `{sessions}` of one room. */
export function parseRoom(roomId: string, { sessions }: JsonObject): SessionKey[] {
  if (!isJsonObject(sessions)) throw invalidParam(`The sessions of ${roomId} must be an object`);
  return Object.entries(sessions).map(([sessionId, key]) => parseSession(roomId, sessionId, key));
}

export function parseSession(roomId: string, sessionId: string, key: unknown): SessionKey {
  checkRoomKeyIds(roomId, sessionId);
  if (!isJsonObject(key)) throw invalidParam(`The key of ${sessionId} must be an object`);
  const { first_message_index, forwarded_count, is_verified, session_data } = key;
  if (!isCount(first_message_index)) throw invalidParam('first_message_index must be a number of messages');
  if (!isCount(forwarded_count)) throw invalidParam('forwarded_count must be a number of devices');
  if (typeof is_verified !== 'boolean') throw invalidParam('is_verified must be true or false');
  if (!isJsonObject(session_data)) throw invalidParam('session_data must be an object');
  const sessionData = JSON.stringify(session_data);
  if (sessionData.length > largestData) throw tooLarge(`The key of ${sessionId} is too large`);
  return {
    roomId,
    sessionId,
    firstMessageIndex: first_message_index,
    forwardedCount: forwarded_count,
    isVerified: is_verified,
    sessionData,
  };
}

/** @throws MatrixError M_INVALID_PARAM unless they can name a room and a session */
export function checkRoomKeyIds(roomId: string, sessionId?: string): void {
  if (!isRoomId(roomId)) throw invalidParam('This is not a room id');
  if (sessionId === undefined) return;
  if (sessionId === '' || sessionId.length > longestId || sessionId.includes('\0')) {
    throw invalidParam(`A session id has between 1 and ${longestId} characters, without U+0000`);
  }
}

/** The key as clients know it, as JSON. */
export function keyText({ firstMessageIndex, forwardedCount, isVerified, sessionData }: BackedUpKey): string {
  return (
    `{"first_message_index":${firstMessageIndex},"forwarded_count":${forwardedCount},` +
    `"is_verified":${isVerified},"session_data":${sessionData}}`
  );
}

/**
 * Whether a key is better than the one that is there.
 * Source: client-server API, "Server-side key backups".
 */
export function isBetter(key: BackedUpKey, present: BackedUpKey): boolean {
  if (key.isVerified !== present.isVerified) return key.isVerified;
  if (key.firstMessageIndex !== present.firstMessageIndex) {
    return key.firstMessageIndex < present.firstMessageIndex;
  }
  return key.forwardedCount < present.forwardedCount;
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
