import { invalidParam, notFound, tooLarge, unknown } from '../errors.ts';
import type { JsonValue } from '../json.ts';
import { DEFAULT_RULES } from './default-rules.ts';
import {
  type PushAction,
  type PushRule,
  RULE_KINDS,
  type RuleKind,
  type Ruleset,
  type UserRuleKind,
} from './push-rule.ts';
import { parseRuleBody } from './rule-body.ts';
import {
  type DefaultRuleChange,
  defaultRuleKey,
  type UserPushRule,
  type UserPushRules,
  userRulesOf,
} from './user-rules.ts';

/** Maximum number of rules of one user; muting thousands of rooms must be possible. */
export const MAX_USER_RULES = 10_000;

/** Maximum number of characters in all patterns of one user; the compiled patterns take up to 44 MB. */
const MAX_PATTERN_CHARACTERS = 262_144;

/**
 * Where to put a rule, by the id of another rule of the same kind. `before` takes precedence over `after`.
 */
export interface RulePlacement {
  readonly before?: string | undefined;
  readonly after?: string | undefined;
}

const ruleNotFound = () => notFound('The push rule was not found.');

/** Parses the kind in the path of a request. @throws MatrixError M_INVALID_PARAM */
export function parseRuleKind(kind: string): RuleKind {
  const known = RULE_KINDS.find((each) => each === kind);
  if (known === undefined) throw invalidParam(`Unknown kind of push rule: ${kind}`);
  return known;
}

/** Returns one of the rules in the format for clients. @throws MatrixError M_NOT_FOUND */
export function findRule(ruleset: Ruleset, kind: RuleKind, ruleId: string): PushRule {
  const rule = ruleset[kind].find((each) => each.rule_id === ruleId);
  if (rule === undefined) throw ruleNotFound();
  return rule;
}

/**
 * Adds or replaces a rule. A new rule is enabled and comes first in its kind; an existing one stays enabled or disabled
 * and keeps its place, unless the placement sets another place.
 * Source: client-server API, `PUT /pushrules/global/{kind}/{ruleId}`.
 * @throws MatrixError M_INVALID_PARAM for ids that are not allowed and for the kind `postcontent`, M_UNKNOWN (400) if
 * the rule that the placement names does not exist or is a default rule, M_BAD_JSON or M_MISSING_PARAM for the body,
 * M_TOO_LARGE for too many rules or patterns
 */
export function putRule(
  stored: UserPushRules,
  kind: RuleKind,
  ruleId: string,
  body: JsonValue,
  placement: RulePlacement = {},
): UserPushRules {
  checkRuleId(ruleId);
  if (kind === 'postcontent') throw invalidParam('Users cannot have postcontent rules');
  const rules = stored.rules[kind];
  const existing = rules.find((rule) => rule.rule_id === ruleId);
  const rule = { rule_id: ruleId, enabled: existing?.enabled ?? true, ...parseRuleBody(kind, body) };
  return checkLimits(withRules(stored, kind, placeRule(rules, rule, placement)));
}

/**
 * Deletes a rule of the user.
 * Source: client-server API, `DELETE /pushrules/global/{kind}/{ruleId}`.
 * @throws MatrixError M_NOT_FOUND, also for default rules, which cannot be deleted
 */
export function deleteRule(stored: UserPushRules, kind: RuleKind, ruleId: string): UserPushRules {
  const storedRules = userRulesOf(stored, kind);
  const rules = storedRules.filter((rule) => rule.rule_id !== ruleId);
  if (kind === 'postcontent' || rules.length === storedRules.length) throw ruleNotFound();
  return withRules(stored, kind, rules);
}

/** Enables or disables a rule of the user or a default rule. @throws MatrixError M_NOT_FOUND */
export function setRuleEnabled(
  stored: UserPushRules,
  kind: RuleKind,
  ruleId: string,
  enabled: boolean,
): UserPushRules {
  return changeRule(stored, kind, ruleId, { enabled });
}

/**
 * Sets the actions (see `parseActions`) of a rule of the user or of a default rule.
 * @throws MatrixError M_NOT_FOUND
 */
export function setRuleActions(
  stored: UserPushRules,
  kind: RuleKind,
  ruleId: string,
  actions: readonly PushAction[],
): UserPushRules {
  return changeRule(stored, kind, ruleId, { actions });
}

function changeRule(
  stored: UserPushRules,
  kind: RuleKind,
  ruleId: string,
  change: DefaultRuleChange,
): UserPushRules {
  const rules = userRulesOf(stored, kind);
  if (kind !== 'postcontent' && rules.some((rule) => rule.rule_id === ruleId)) {
    return withRules(
      stored,
      kind,
      rules.map((rule) => (rule.rule_id === ruleId ? { ...rule, ...change } : rule)),
    );
  }
  if (!DEFAULT_RULES.some((rule) => rule.kind === kind && rule.ruleId === ruleId)) throw ruleNotFound();
  const key = defaultRuleKey(kind, ruleId);
  return { ...stored, changes: { ...stored.changes, [key]: { ...stored.changes[key], ...change } } };
}

function checkRuleId(ruleId: string): void {
  if (ruleId === '') throw invalidParam('The id of a push rule must not be empty');
  if (ruleId.startsWith('.'))
    throw invalidParam('Push rule ids that start with a dot are reserved for server-default rules');
  if (/[/\\]/.test(ruleId))
    throw invalidParam('The id of a push rule must not contain slashes or backslashes');
}

function placeRule(
  rules: readonly UserPushRule[],
  rule: UserPushRule,
  { before, after }: RulePlacement,
): UserPushRule[] {
  const index = rules.findIndex((each) => each.rule_id === rule.rule_id);
  const anchor = before ?? after;
  if (anchor === undefined || (anchor === rule.rule_id && index !== -1)) {
    return index === -1 ? [rule, ...rules] : rules.with(index, rule);
  }
  const others = rules.filter((each) => each.rule_id !== rule.rule_id);
  const anchorIndex = others.findIndex((each) => each.rule_id === anchor);
  if (anchorIndex === -1)
    throw unknown(`The push rule in the parameter 'before' or 'after' was not found: ${anchor}`, 400);
  return others.toSpliced(before === undefined ? anchorIndex + 1 : anchorIndex, 0, rule);
}

const withRules = (
  stored: UserPushRules,
  kind: UserRuleKind,
  rules: readonly UserPushRule[],
): UserPushRules => ({
  ...stored,
  rules: { ...stored.rules, [kind]: rules },
});

function checkLimits(stored: UserPushRules): UserPushRules {
  const all = RULE_KINDS.flatMap((kind) => userRulesOf(stored, kind));
  if (all.length > MAX_USER_RULES) throw tooLarge(`A user may have at most ${MAX_USER_RULES} push rules`);
  const characters = all.reduce((sum, rule) => sum + patternCharacters(rule), 0);
  if (characters > MAX_PATTERN_CHARACTERS) {
    throw tooLarge(`The patterns of all push rules may have at most ${MAX_PATTERN_CHARACTERS} characters`);
  }
  return stored;
}

function patternCharacters({ pattern = '', conditions = [] }: UserPushRule): number {
  const conditionPatterns = conditions.map((condition) => condition['pattern']);
  return [pattern, ...conditionPatterns].reduce<number>(
    (sum, each) => sum + (typeof each === 'string' ? each.length : 0),
    0,
  );
}
