import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  putRule,
  type UserPushRules,
} from '../protocol/index.ts';
import type { Users } from './users.ts';

/** Kinds of push rules that clients name after a room: notifications for the room, and muting it. */
const kinds = ['room', 'override'] as const;

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
  const present = await pushRules.rulesetOf(userId);
  if (kinds.some((kind) => present[kind].some(({ rule_id: ruleId }) => ruleId === from))) {
    await pushRules.change(userId, (rules) => withRulesFor(rules, from, to));
  }
  const direct = { userId, roomId: undefined, type: 'm.direct' };
  await accountData.update(direct, (content) => withDirectRoom(content ?? {}, from, to));
}

function withRulesFor(rules: UserPushRules, from: string, to: string): UserPushRules {
  let changed = rules;
  for (const kind of kinds) {
    const rule = rules.rules[kind].find(({ rule_id: ruleId }) => ruleId === from);
    if (!rule || rules.rules[kind].some(({ rule_id: ruleId }) => ruleId === to)) continue;
    const { actions, conditions } = rule;
    const body = JSON.stringify(kind === 'room' ? { actions } : { actions, conditions });
    changed = putRule(
      changed,
      kind,
      to,
      JSON.parse(body.replaceAll(JSON.stringify(from), JSON.stringify(to))),
    );
  }
  return changed;
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
