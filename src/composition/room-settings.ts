import { copyRoomRules, isJsonObject, type JsonObject, type JsonValue } from '../protocol/index.ts';
import type { Users } from './users.ts';

/**
 * Copies a user's tags and push rules from one room to another, and marks the other as direct chat if the
 * first is one.
 */
export async function transferSettings(
  { tags, pushRules, accountData }: Pick<Users, 'tags' | 'pushRules' | 'accountData'>,
  userId: string,
  from: string,
  to: string,
): Promise<void> {
  if (Object.keys(await tags.list(userId, to)).length === 0) {
    for (const [tag, info] of Object.entries(await tags.list(userId, from))) {
      if (isJsonObject(info)) await tags.set(userId, to, tag, info);
    }
  }
  const rules = await pushRules.userRulesOf(userId);
  if (copyRoomRules(rules, from, to) !== rules) {
    await pushRules.change(userId, (present) => copyRoomRules(present, from, to));
  }
  const direct = { userId, roomId: undefined, type: 'm.direct' };
  await accountData.update(direct, (content) => withDirectRoom(content ?? {}, from, to));
}

/** Returns `m.direct` with the new room; `undefined` when the old room is no direct chat. */
function withDirectRoom(content: JsonObject, from: string, to: string): JsonObject | undefined {
  const concerns = (rooms: JsonValue | undefined): rooms is JsonValue[] =>
    Array.isArray(rooms) && rooms.includes(from) && !rooms.includes(to);
  if (!Object.values(content).some(concerns)) return undefined;
  const entries = Object.entries(content).map(([other, rooms]) => [
    other,
    concerns(rooms) ? [...rooms, to] : rooms,
  ]);
  return Object.fromEntries(entries);
}
