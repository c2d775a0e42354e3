import { badJson, missingParam } from '../errors.ts';
import { MAX_GLOB_LENGTH } from '../globs/glob.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import { effectiveActions } from './outcome.ts';
import type { PushAction, PushCondition, RuleKind } from './push-rule.ts';

/** More conditions than anybody needs in one rule. */
const MAX_CONDITIONS = 100;

/** The part of a rule that a client writes. */
export interface RuleBody {
  readonly actions: readonly PushAction[];
  readonly conditions?: readonly PushCondition[];
  readonly pattern?: string;
}

/**
 * Reads the body of a request that sets a rule; members that the kind does not have are dropped.
 * Throws M_MISSING_PARAM and M_BAD_JSON.
 */
export function parseRuleBody(kind: RuleKind, body: JsonValue): RuleBody {
  if (!isJsonObject(body)) throw badJson('A push rule must be an object');
  const actions = parseActions(body);
  if (kind === 'content') return { actions, pattern: parsePattern(body['pattern']) };
  if (kind === 'room' || kind === 'sender') return { actions };
  return { actions, conditions: parseConditions(body['conditions']) };
}

/**
 * Reads `actions` from the body of a request, without the historical ones. Of those that it does not know it keeps the
 * ones with the name of a vendor in front: others are mistakes, and would silence what was meant to notify.
 * Throws M_MISSING_PARAM and M_BAD_JSON.
 */
export function parseActions({ actions }: JsonObject): PushAction[] {
  if (actions === undefined) throw missingParam('Missing actions');
  if (!Array.isArray(actions)) throw badJson('actions must be an array');
  const effective = effectiveActions(actions);
  const isWellFormed = (action: JsonValue) => typeof action === 'string' || isJsonObject(action);
  if (!actions.every(isWellFormed)) throw badJson('Each of the actions must be a string or an object');
  for (const action of effective) {
    if (typeof action === 'string' && action !== 'notify' && !action.includes('.')) {
      throw badJson(`There is no action '${action.slice(0, 255)}'`);
    }
  }
  return effective;
}

function parsePattern(pattern: JsonValue | undefined): string {
  if (pattern === undefined) throw missingParam('Missing pattern');
  if (typeof pattern !== 'string') throw badJson('pattern must be a string');
  checkPattern(pattern);
  return pattern;
}

function parseConditions(conditions: JsonValue | undefined): PushCondition[] {
  if (conditions === undefined) return [];
  if (!Array.isArray(conditions)) throw badJson('conditions must be an array');
  if (conditions.length > MAX_CONDITIONS) throw badJson(`There may be ${MAX_CONDITIONS} conditions at most`);
  return conditions.map((condition: JsonValue) => {
    if (!isCondition(condition)) throw badJson('Each of the conditions must be an object with a kind');
    const { pattern } = condition;
    if (typeof pattern === 'string') checkPattern(pattern);
    return condition;
  });
}

const isCondition = (value: JsonValue): value is PushCondition =>
  isJsonObject(value) && typeof value['kind'] === 'string';

/** A longer one would be stored but never match. */
function checkPattern(pattern: string): void {
  if (pattern.length > MAX_GLOB_LENGTH) {
    throw badJson(`A pattern may have ${MAX_GLOB_LENGTH} characters at most`);
  }
}
