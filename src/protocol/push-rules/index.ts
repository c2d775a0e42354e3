export { type CompiledRuleset, compileUserRules, compileUserRulesInSteps } from './compile.ts';
export { copyRoomRules } from './copy-room-rules.ts';
export {
  deleteRule,
  findRule,
  parseRuleKind,
  putRule,
  type RulePlacement,
  setRuleActions,
  setRuleEnabled,
} from './edit-rules.ts';
export { evaluateRules } from './evaluate.ts';
export { NO_OUTCOME, type PushOutcome } from './outcome.ts';
export { PushEvent, type PushMember, type PushRoomFacts, type PushSubject } from './push-event.ts';
export type { PushAction, PushCondition, PushRule, RuleKind, Ruleset } from './push-rule.ts';
export { parseActions } from './rule-body.ts';
export {
  type DefaultRuleChange,
  effectiveRuleset,
  NO_USER_RULES,
  type UserPushRule,
  type UserPushRules,
} from './user-rules.ts';
