import type { JsonObject } from '../json.ts';
import { putRule } from './edit-rules.ts';
import type { UserRuleKind } from './push-rule.ts';
import { type UserPushRule, type UserPushRules, userRulesOf } from './user-rules.ts';

/**
 * Kinds of rules that can concern a single room: a `room` rule has the id of the room, the other two can have a
 * condition on `room_id`.
 */
const kinds: readonly UserRuleKind[] = ['override', 'room', 'underride'];

/**
 * Whether a rule concerns only this room: its id is the room's id, or one of its conditions compares `room_id` with it.
 */
const isRuleOfRoom = ({ rule_id: ruleId, conditions = [] }: UserPushRule, roomId: string): boolean =>
  ruleId === roomId || conditions.some(({ key, pattern }) => key === 'room_id' && pattern === roomId);

/**
 * Returns the rules and, for each enabled rule about the room `from`, a copy about the room `to`. The copies have the
 * order of the originals. An existing rule is not replaced. The id of a copy is the id of the original with `from`
 * replaced by `to`; if that id does not contain `from`, `to` is appended to it.
 * @throws MatrixError M_TOO_LARGE when there are too many rules, M_INVALID_PARAM when `to` cannot be part of an id of a
 * rule
 */
export function copyRoomRules(stored: UserPushRules, from: string, to: string): UserPushRules {
  let copied = stored;
  for (const kind of kinds) {
    for (const rule of userRulesOf(stored, kind).toReversed()) {
      const ruleId = rule.rule_id.includes(from)
        ? rule.rule_id.replaceAll(from, () => to)
        : `${rule.rule_id} ${to}`;
      if (!rule.enabled || !isRuleOfRoom(rule, from)) continue;
      if (userRulesOf(copied, kind).some((present) => present.rule_id === ruleId)) continue;
      const body = JSON.stringify({ actions: rule.actions, conditions: rule.conditions });
      copied = putRule(
        copied,
        kind,
        ruleId,
        JSON.parse(body.replaceAll(JSON.stringify(from), () => JSON.stringify(to))) as JsonObject,
      );
    }
  }
  return copied;
}
