import { DEFAULT_RULES, type DefaultRule, MASTER_RULE_ID } from './default-rules.ts';
import type { PushAction, PushCondition, PushRule, RuleKind, Ruleset, UserRuleKind } from './push-rule.ts';

/** A rule that the user created. */
export interface UserPushRule {
  readonly rule_id: string;
  readonly enabled: boolean;
  readonly actions: readonly PushAction[];
  readonly conditions?: readonly PushCondition[];
  readonly pattern?: string;
}

/** What a user can change of any rule: the only stored part of a server-default rule. */
export interface DefaultRuleChange {
  readonly enabled?: boolean;
  readonly actions?: readonly PushAction[];
}

/**
 * The stored rules of a user: their own rules and their changes to default rules, as plain JSON. Does not
 * hold the default rules themselves, so that later versions of the server can change them.
 */
export interface UserPushRules {
  /** Most important first. */
  readonly rules: Readonly<Record<UserRuleKind, readonly UserPushRule[]>>;
  /** Changes of default rules, by `defaultRuleKey`. */
  readonly changes: Readonly<Record<string, DefaultRuleChange>>;
}

/** The rules of a user without changes. */
export const NO_USER_RULES: UserPushRules = {
  rules: { override: [], content: [], room: [], sender: [], underride: [] },
  changes: {},
};

/** Returns the rules of a kind that the user created. */
export const userRulesOf = (stored: UserPushRules, kind: RuleKind): readonly UserPushRule[] =>
  kind === 'postcontent' ? [] : stored.rules[kind];

/** Returns the key of a default rule in `UserPushRules.changes`. */
export const defaultRuleKey = (kind: RuleKind, ruleId: string): string => `${kind}/${ruleId}`;

/**
 * Returns all rules of a user in the format for clients and in the order of evaluation: within each kind the
 * user's own rules before the default rules, except for `.m.rule.master`, which comes first.
 * Source: client-server API, "Predefined Rules".
 */
export function effectiveRuleset(userId: string, stored: UserPushRules): Ruleset {
  const ofKind = (kind: RuleKind): PushRule[] => {
    const own = userRulesOf(stored, kind).map(userPushRule);
    const defaults = DEFAULT_RULES.filter((rule) => rule.kind === kind).map((rule) =>
      defaultPushRule(rule, userId, stored.changes[defaultRuleKey(kind, rule.ruleId)] ?? {}),
    );
    const master = defaults.filter((rule) => rule.rule_id === MASTER_RULE_ID);
    return [...master, ...own, ...defaults.filter((rule) => rule.rule_id !== MASTER_RULE_ID)];
  };
  return {
    override: ofKind('override'),
    content: ofKind('content'),
    postcontent: ofKind('postcontent'),
    room: ofKind('room'),
    sender: ofKind('sender'),
    underride: ofKind('underride'),
  };
}

const userPushRule = (rule: UserPushRule): PushRule => ({
  ...rule,
  default: false,
});

function defaultPushRule(rule: DefaultRule, userId: string, change: DefaultRuleChange): PushRule {
  const memberCondition = rule.memberPart?.condition?.(userId);
  const pattern = rule.memberPart?.pattern?.(userId);
  return {
    rule_id: rule.ruleId,
    default: true,
    enabled: change.enabled ?? rule.enabled,
    actions: change.actions ?? rule.actions,
    ...(rule.conditions && {
      conditions: memberCondition ? [...rule.conditions, memberCondition] : rule.conditions,
    }),
    ...(pattern !== undefined && { pattern }),
  };
}
