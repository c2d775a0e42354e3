import { badJson, missingParam } from '../errors.ts';
import { MAX_GLOB_LENGTH } from '../globs/glob.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import type { PushAction, PushCondition, RuleKind } from './push-rule.ts';

/** Maximum number of conditions in one rule, more than any real rule needs. */
const MAX_CONDITIONS = 100;

/** Maximum number of characters of an unknown action that an error quotes. */
const MAX_QUOTED_LENGTH = 255;

/** The part of a rule that clients send. */
export interface RuleBody {
  readonly actions: readonly PushAction[];
  readonly conditions?: readonly PushCondition[];
  readonly pattern?: string;
}

/**
 * Parses the body of a request that sets a rule. Drops fields that rules of this kind do not have.
 * @throws MatrixError M_MISSING_PARAM or M_BAD_JSON
 */
export function parseRuleBody(kind: RuleKind, body: JsonValue): RuleBody {
  if (!isJsonObject(body)) throw badJson('A push rule must be an object');
  const actions = parseActions(body);
  if (kind === 'content') return { actions, pattern: parsePattern(body['pattern']) };
  if (kind === 'room' || kind === 'sender') return { actions };
  return { actions, conditions: parseConditions(body['conditions']) };
}

/** `dont_notify` and `coalesce` are historical: stored as given, without an effect. */
const namedActions: ReadonlySet<JsonValue> = new Set(['notify', 'dont_notify', 'coalesce']);

/**
 * Parses `actions` in the body of a request, and keeps them as given. Refuses unknown actions: they are mistakes, and
 * would silence events that should notify.
 * @throws MatrixError M_MISSING_PARAM or M_BAD_JSON
 */
export function parseActions({ actions }: JsonObject): PushAction[] {
  if (actions === undefined) throw missingParam('Missing actions');
  if (!Array.isArray(actions)) throw badJson('actions must be an array');
  return actions.map((action: JsonValue) => {
    if (!isKnownAction(action)) {
      throw badJson(`Unknown push rule action: ${JSON.stringify(action).slice(0, MAX_QUOTED_LENGTH)}`);
    }
    return action;
  });
}

const isKnownAction = (action: JsonValue): action is PushAction =>
  namedActions.has(action) || (isJsonObject(action) && Object.hasOwn(action, 'set_tweak'));

function parsePattern(pattern: JsonValue | undefined): string {
  if (pattern === undefined) throw missingParam('Missing pattern');
  if (typeof pattern !== 'string') throw badJson('pattern must be a string');
  checkPattern(pattern);
  return pattern;
}

function parseConditions(conditions: JsonValue | undefined): PushCondition[] {
  if (conditions === undefined) return [];
  if (!Array.isArray(conditions)) throw badJson('conditions must be an array');
  if (conditions.length > MAX_CONDITIONS)
    throw badJson(`A push rule may have at most ${MAX_CONDITIONS} conditions`);
  return conditions.map((condition: JsonValue) => {
    if (!isCondition(condition)) throw badJson('Each condition must be an object with a kind');
    const { pattern } = condition;
    if (typeof pattern === 'string') checkPattern(pattern);
    return condition;
  });
}

const isCondition = (value: JsonValue): value is PushCondition =>
  isJsonObject(value) && typeof value['kind'] === 'string';

/** Refuses patterns of more than `MAX_GLOB_LENGTH` characters, which would be stored but never match. */
function checkPattern(pattern: string): void {
  if (pattern.length > MAX_GLOB_LENGTH) {
    throw badJson(`A pattern may have at most ${MAX_GLOB_LENGTH} characters`);
  }
}
