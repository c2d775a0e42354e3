import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import { compileBodyMatch, compileCondition, type PushMatcher } from './conditions.ts';
import { DEFAULT_RULES, type DefaultRule } from './default-rules.ts';
import { outcomeOf, type PushOutcome } from './outcome.ts';
import type { PushEvent } from './push-event.ts';
import type { RuleKind, Ruleset } from './push-rule.ts';
import { defaultRuleKey, effectiveRuleset, NO_USER_RULES, type UserPushRules } from './user-rules.ts';

/** An enabled rule that can match some event. */
export interface CompiledRule {
  readonly matches: PushMatcher;
  readonly outcome: PushOutcome;
}

/** The rules of a user, compiled for evaluation on any number of events. Immutable. */
export interface CompiledRuleset {
  readonly override: readonly CompiledRule[];
  readonly content: readonly CompiledRule[];
  readonly postcontent: readonly CompiledRule[];
  /** By room id. */
  readonly room: ReadonlyMap<string, CompiledRule>;
  /** By user id. */
  readonly sender: ReadonlyMap<string, CompiledRule>;
  readonly underride: readonly CompiledRule[];
}

/** A computation that yields between its steps. */
type Steps<T> = Generator<void, T>;

const always = (): boolean => true;
const never = (): boolean => false;

/** Combines matchers in their order; `undefined` if one of them can never match. */
function allOf(tests: readonly (PushMatcher | undefined)[]): PushMatcher | undefined {
  const possible = tests.filter((test) => test !== undefined);
  if (possible.length < tests.length) return undefined;
  const [first = always, ...rest] = possible;
  return rest.length === 0 ? first : (event, member) => possible.every((test) => test(event, member));
}

/**
 * Stands for the member in the shared conditions of default rules: these conditions look only at the event and the
 * room.
 */
const NO_MEMBER = { userId: '' };

/**
 * Compiles a default rule. Conditions that are the same for all members are evaluated once for each event.
 * @param slot the rule's index among the default rules; an event keeps the shared result under this index
 */
function compileDefault(rule: DefaultRule, slot: number): PushMatcher {
  const test = allOf((rule.conditions ?? []).map(compileCondition)) ?? never;
  const shared = (event: PushEvent) =>
    !(rule.legacyMention && Object.hasOwn(event.content, 'm.mentions')) && test(event, NO_MEMBER);
  const matchesMember = rule.memberPart?.matches ?? always;
  return (event, member) => event.sharedResult(slot, shared) && matchesMember(event, member);
}

const DEFAULT_MATCHERS: ReadonlyMap<string, PushMatcher> = new Map(
  DEFAULT_RULES.map((rule, slot) => [defaultRuleKey(rule.kind, rule.ruleId), compileDefault(rule, slot)]),
);

/** Compiles the conditions of a rule. Yields after each condition. */
function* compileMatcher(kind: RuleKind, rule: JsonObject): Steps<PushMatcher | undefined> {
  const known =
    rule['default'] === true && DEFAULT_MATCHERS.get(defaultRuleKey(kind, String(rule['rule_id'])));
  if (known) return known;
  if (kind === 'content') return compileBodyMatch(rule['pattern']);
  if (kind === 'room' || kind === 'sender') return always;
  const conditions = rule['conditions'] ?? [];
  if (!Array.isArray(conditions)) return undefined;
  const tests: (PushMatcher | undefined)[] = [];
  for (const condition of conditions) {
    tests.push(compileCondition(condition));
    yield;
  }
  return allOf(tests);
}

/** Returns the enabled and well-formed rules of one kind, with their ids. Yields between them. */
function* compileKind(kind: RuleKind, ruleset: JsonObject): Steps<[ruleId: string, CompiledRule][]> {
  const rules = ruleset[kind];
  const compiled: [string, CompiledRule][] = [];
  if (!Array.isArray(rules)) return compiled;
  for (const rule of rules.filter(isJsonObject)) {
    const { rule_id: ruleId, enabled, actions } = rule;
    if (typeof ruleId !== 'string' || enabled !== true || !Array.isArray(actions)) continue;
    const matches = yield* compileMatcher(kind, rule);
    if (matches !== undefined) compiled.push([ruleId, { matches, outcome: outcomeOf(ruleId, actions) }]);
    yield;
  }
  return compiled;
}

/** Rules by id; the first of several rules with the same id counts. */
const firstById = (rules: [string, CompiledRule][]): ReadonlyMap<string, CompiledRule> =>
  new Map(rules.toReversed());

const inOrder = (rules: [string, CompiledRule][]): CompiledRule[] => rules.map(([, rule]) => rule);

/**
 * Compiles a ruleset in the format for clients. Leaves out rules that are malformed, disabled or have a
 * condition that this server does not know, because they cannot match. Never throws.
 */
export const compileRuleset = (ruleset: Ruleset | JsonValue): CompiledRuleset =>
  resultOf(compileRulesetInSteps(ruleset));

function* compileRulesetInSteps(ruleset: Ruleset | JsonValue): Steps<CompiledRuleset> {
  const json = isJsonObject(ruleset as JsonValue) ? (ruleset as JsonObject) : {};
  return {
    override: inOrder(yield* compileKind('override', json)),
    content: inOrder(yield* compileKind('content', json)),
    postcontent: inOrder(yield* compileKind('postcontent', json)),
    room: firstById(yield* compileKind('room', json)),
    sender: firstById(yield* compileKind('sender', json)),
    underride: inOrder(yield* compileKind('underride', json)),
  };
}

function resultOf<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

const DEFAULTS = compileRuleset(effectiveRuleset('', NO_USER_RULES));

/**
 * Compiles the stored rules of a user. Default rules take the user id from the member for whom they are
 * evaluated, so that all users without changes share one compiled ruleset.
 */
export const compileUserRules = (stored: UserPushRules): CompiledRuleset =>
  resultOf(compileUserRulesInSteps(stored));

/** Compiles like `compileUserRules`. Yields between rules and conditions, because many long patterns take tens of milliseconds. */
export function* compileUserRulesInSteps(stored: UserPushRules): Steps<CompiledRuleset> {
  const unchanged =
    Object.keys(stored.changes).length === 0 &&
    Object.values(stored.rules).every((rules) => rules.length === 0);
  return unchanged ? DEFAULTS : yield* compileRulesetInSteps(effectiveRuleset('', stored));
}
