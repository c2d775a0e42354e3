import { isUserId } from '../identifiers/user-ids.ts';
import { isJsonObject, type JsonObject } from '../json.ts';

/** Whom an event mentions. */
export interface Mentions {
  /** Without duplicates. */
  readonly userIds: readonly string[];
  /** Whether it mentions everybody in the room. */
  readonly room: boolean;
}

/**
 * Reads `m.mentions` from the content of an event; undefined when the event has none, so that its body may be
 * searched for mentions. What is malformed mentions nobody.
 * Source: client-server API, "User and room mentions".
 */
export function mentionsOf(content: JsonObject): Mentions | undefined {
  const mentions = content['m.mentions'];
  if (mentions === undefined) return undefined;
  if (!isJsonObject(mentions)) return { userIds: [], room: false };
  const { user_ids: listed, room } = mentions;
  const userIds = Array.isArray(listed) ? new Set(listed.filter(isUserId)) : [];
  return { userIds: [...userIds], room: room === true };
}
