import { invalidParam, isJsonObject, isRoomId, type JsonObject, tooLarge } from '../../protocol/index.ts';

/** The encrypted key of a Megolm session, with the data that decides which of two keys is better. */
export interface BackedUpKey {
  readonly firstMessageIndex: number;
  readonly forwardedCount: number;
  readonly isVerified: boolean;
  /** `session_data` as JSON. */
  readonly sessionData: string;
}

/** A key with its room and session. */
export interface SessionKey extends BackedUpKey {
  readonly roomId: string;
  readonly sessionId: string;
}

/** Maximum number of keys in a request: clients send 100 or 200 at a time. */
const maxKeys = 2_000;

/** Maximum characters of a session id. */
const maxIdLength = 255;

/** Maximum UTF-16 code units of an encrypted session key. Such a key usually has about 800. */
const maxDataLength = 65_536;

/**
 * Parses `{room id: {sessions: {session id: key}}}`.
 * Source: client-server API, `PUT /room_keys/keys`.
 * @throws MatrixError M_INVALID_PARAM, M_TOO_LARGE
 */
export function parseRooms(rooms: JsonObject): SessionKey[] {
  let count = 0;
  const entriesByRoom = Object.entries(rooms).map(([roomId, room]) => {
    if (!isJsonObject(room)) throw invalidParam(`The keys of ${roomId} must be an object`);
    const entries = sessionEntries(roomId, room);
    count += entries.length;
    checkCount(count);
    return [roomId, entries] as const;
  });
  return entriesByRoom.flatMap(([roomId, entries]) => parseSessions(roomId, entries));
}

/** Parses `{sessions}` of one room. @throws MatrixError M_INVALID_PARAM, M_TOO_LARGE */
export function parseRoom(roomId: string, room: JsonObject): SessionKey[] {
  const entries = sessionEntries(roomId, room);
  checkCount(entries.length);
  return parseSessions(roomId, entries);
}

type SessionEntries = readonly (readonly [sessionId: string, key: unknown])[];

function sessionEntries(roomId: string, { sessions }: JsonObject): SessionEntries {
  if (!isJsonObject(sessions)) throw invalidParam(`The sessions of ${roomId} must be an object`);
  return Object.entries(sessions);
}

function checkCount(count: number): void {
  if (count > maxKeys) throw tooLarge(`Send at most ${maxKeys} keys at once`);
}

const parseSessions = (roomId: string, entries: SessionEntries): SessionKey[] =>
  entries.map(([sessionId, key]) => parseSession(roomId, sessionId, key));

/** Parses the backed up key of one session. @throws MatrixError M_INVALID_PARAM, M_TOO_LARGE */
export function parseSession(roomId: string, sessionId: string, key: unknown): SessionKey {
  checkRoomKeyIds(roomId, sessionId);
  if (!isJsonObject(key)) throw invalidParam(`The key of ${sessionId} must be an object`);
  const { first_message_index, forwarded_count, is_verified, session_data } = key;
  if (!isCount(first_message_index)) throw invalidParam('first_message_index must be a non-negative integer');
  if (!isCount(forwarded_count)) throw invalidParam('forwarded_count must be a non-negative integer');
  if (typeof is_verified !== 'boolean') throw invalidParam('is_verified must be true or false');
  if (!isJsonObject(session_data)) throw invalidParam('session_data must be an object');
  const sessionData = JSON.stringify(session_data);
  if (sessionData.length > maxDataLength) throw tooLarge(`The key of ${sessionId} is too large`);
  return {
    roomId,
    sessionId,
    firstMessageIndex: first_message_index,
    forwardedCount: forwarded_count,
    isVerified: is_verified,
    sessionData,
  };
}

/** @throws MatrixError M_INVALID_PARAM for a malformed room or session id */
export function checkRoomKeyIds(roomId: string, sessionId?: string): void {
  if (!isRoomId(roomId)) throw invalidParam('The room id is malformed');
  if (sessionId === undefined) return;
  if (sessionId === '' || sessionId.length > maxIdLength || sessionId.includes('\0')) {
    throw invalidParam(`A session id must have 1 to ${maxIdLength} characters, without U+0000`);
  }
}

/** Returns the key as JSON, as clients send and receive it. */
export function keyText({ firstMessageIndex, forwardedCount, isVerified, sessionData }: BackedUpKey): string {
  return (
    `{"first_message_index":${firstMessageIndex},"forwarded_count":${forwardedCount},` +
    `"is_verified":${isVerified},"session_data":${sessionData}}`
  );
}

/**
 * Reports whether a key is to replace the stored key.
 * Source: client-server API, "Server-side key backups".
 */
export function isBetter(key: BackedUpKey, stored: BackedUpKey): boolean {
  if (key.isVerified !== stored.isVerified) return key.isVerified;
  if (key.firstMessageIndex !== stored.firstMessageIndex) {
    return key.firstMessageIndex < stored.firstMessageIndex;
  }
  return key.forwardedCount < stored.forwardedCount;
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
