import type { JsonObject } from '../json.ts';

/**
 * The kinds of rules in the order of evaluation. Users cannot create `postcontent` rules.
 * Source: client-server API, "Push Rules"; MSC4306 for `postcontent`.
 */
export const RULE_KINDS = ['override', 'content', 'postcontent', 'room', 'sender', 'underride'] as const;
export type RuleKind = (typeof RULE_KINDS)[number];

/** The kinds of rules that users can create. */
export type UserRuleKind = Exclude<RuleKind, 'postcontent'>;

/** `notify`, a historical action, or `{ set_tweak, value }`. */
export type PushAction = string | JsonObject;

export interface PushCondition extends JsonObject {
  readonly kind: string;
}

/** A rule in the format for clients. */
export interface PushRule {
  readonly rule_id: string;
  readonly default: boolean;
  readonly enabled: boolean;
  readonly actions: readonly PushAction[];
  /** Only in `override`, `postcontent` and `underride` rules. */
  readonly conditions?: readonly PushCondition[];
  /** Only in `content` rules. */
  readonly pattern?: string;
}

/** All rules of a user; within each kind the first one that matches counts. */
export type Ruleset = Readonly<Record<RuleKind, readonly PushRule[]>>;
