import {
  copyRoomRules,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  MatrixError,
} from '../protocol/index.ts';
import type { Users } from './users.ts';

/**
 * Copies a user's push rules from the room `from` to the room `to`. Copies the tags unless `to` has tags already. Marks
 * `to` as a direct chat if `from` is one. When one of these changes is refused, for instance because there are too many
 * rules, the other changes are still made.
 * @throws MatrixError the first refusal
 */
export async function transferSettings(
  { tags, pushRules, accountData }: Pick<Users, 'tags' | 'pushRules' | 'accountData'>,
  userId: string,
  from: string,
  to: string,
): Promise<void> {
  const copyTags = async () => {
    if (Object.keys(await tags.list(userId, to)).length > 0) return;
    for (const [tag, info] of Object.entries(await tags.list(userId, from))) {
      if (isJsonObject(info)) await tags.set(userId, to, tag, info);
    }
  };
  const copyRules = async () => {
    const rules = await pushRules.userRulesOf(userId);
    if (copyRoomRules(rules, from, to) === rules) return;
    await pushRules.change(userId, (present) => copyRoomRules(present, from, to));
  };
  const markDirect = async () => {
    const direct = { userId, roomId: undefined, type: 'm.direct' };
    await accountData.update(direct, (content) => withDirectRoom(content ?? {}, from, to));
  };
  let refusal: MatrixError | undefined;
  for (const copy of [copyTags, markDirect, copyRules]) {
    try {
      await copy();
    } catch (error) {
      if (!(error instanceof MatrixError)) throw error;
      refusal ??= error;
    }
  }
  if (refusal) throw refusal;
}

/** Returns the content of `m.direct` with `to` added to each list that has `from`; `undefined` when nothing changes. */
function withDirectRoom(content: JsonObject, from: string, to: string): JsonObject | undefined {
  const lacksRoom = (rooms: JsonValue | undefined): rooms is JsonValue[] =>
    Array.isArray(rooms) && rooms.includes(from) && !rooms.includes(to);
  if (!Object.values(content).some(lacksRoom)) return undefined;
  const entries = Object.entries(content).map(([partner, rooms]) => [
    partner,
    lacksRoom(rooms) ? [...rooms, to] : rooms,
  ]);
  return Object.fromEntries(entries);
}
