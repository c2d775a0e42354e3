import { DEFAULT_RULES, type DefaultRule, MASTER_RULE_ID } from './default-rules.ts';
import { effectiveActions } from './outcome.ts';
import type { PushAction, PushCondition, PushRule, RuleKind, Ruleset, UserRuleKind } from './push-rule.ts';

/** A rule that the user made. */
export interface UserPushRule {
  readonly rule_id: string;
  readonly enabled: boolean;
  readonly actions: readonly PushAction[];
  readonly conditions?: readonly PushCondition[];
  readonly pattern?: string;
}

/** What a user changed about a server-default rule. */
export interface DefaultRuleChange {
  readonly enabled?: boolean;
  readonly actions?: readonly PushAction[];
}

/**
 * What is stored for a user: their own rules and their changes to default rules, as plain JSON. The default rules
 * themselves are not in it, so that later versions can change them.
 */
export interface UserPushRules {
  /** The most important first. */
  readonly rules: Readonly<Record<UserRuleKind, readonly UserPushRule[]>>;
  /** By `changeKey`. */
  readonly changes: Readonly<Record<string, DefaultRuleChange>>;
}

/** The rules of a user who never changed any. */
export const NO_USER_RULES: UserPushRules = {
  rules: { override: [], content: [], room: [], sender: [], underride: [] },
  changes: {},
};

/** Which default rules there are. */
export interface DefaultRuleOptions {
  /**
   * Whether to keep the rules that look for the user's name and for `@room` in the body of events without
   * `m.mentions`. The specification removed them in v1.17, but old clients mention people in no other way.
   */
  readonly legacyMentions?: boolean;
}

/** The rules of a kind that the user made. */
export const userRulesOf = (stored: UserPushRules, kind: RuleKind): readonly UserPushRule[] =>
  kind === 'postcontent' ? [] : stored.rules[kind];

/** The key of a default rule in `UserPushRules.changes`. */
export const defaultRuleKey = (kind: RuleKind, ruleId: string): string => `${kind}/${ruleId}`;

/** The default rules that are in force. */
export const defaultRulesFor = ({ legacyMentions = false }: DefaultRuleOptions): readonly DefaultRule[] =>
  DEFAULT_RULES.filter((rule) => legacyMentions || rule.legacyMention !== true);

/**
 * All rules of a user as clients see them and in the order in which they are tried: within each kind the user's own
 * before the defaults, except for `.m.rule.master`, which comes first.
 * Source: client-server API, "Predefined Rules".
 */
export function effectiveRuleset(
  userId: string,
  stored: UserPushRules,
  options: DefaultRuleOptions = {},
): Ruleset {
  const defaults = defaultRulesFor(options);
  const ofKind = (kind: RuleKind): PushRule[] => {
    const own = userRulesOf(stored, kind).map(userPushRule);
    const ofServer = defaults
      .filter((rule) => rule.kind === kind)
      .map((rule) => defaultPushRule(rule, userId, stored.changes[defaultRuleKey(kind, rule.ruleId)] ?? {}));
    const master = ofServer.filter((rule) => rule.rule_id === MASTER_RULE_ID);
    return [...master, ...own, ...ofServer.filter((rule) => rule.rule_id !== MASTER_RULE_ID)];
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
  actions: effectiveActions(rule.actions),
});

function defaultPushRule(rule: DefaultRule, userId: string, change: DefaultRuleChange): PushRule {
  const memberCondition = rule.memberPart?.condition?.(userId);
  const pattern = rule.memberPart?.pattern?.(userId);
  return {
    rule_id: rule.ruleId,
    default: true,
    enabled: change.enabled ?? rule.enabled,
    actions: effectiveActions(change.actions ?? rule.actions),
    ...(rule.conditions && {
      conditions: memberCondition ? [...rule.conditions, memberCondition] : rule.conditions,
    }),
    ...(pattern !== undefined && { pattern }),
  };
}
