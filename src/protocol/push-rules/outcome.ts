import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import type { PushAction } from './push-rule.ts';

/** The result of evaluating a user's rules on an event. */
export interface PushOutcome {
  /** The rule that matched; `undefined` if none did. */
  readonly ruleId: string | undefined;
  /** The actions of that rule, except historical and malformed actions, which are ignored. */
  readonly actions: readonly PushAction[];
  /** Whether the event counts as a notification and is sent to the pushers. */
  readonly notify: boolean;
  /** Whether the event counts as a highlight. */
  readonly highlight: boolean;
  /** The `tweaks` for the push gateway. */
  readonly tweaks: JsonObject;
}

/** The outcome if no rule matches, and for the user's own events. */
export const NO_OUTCOME: PushOutcome = {
  ruleId: undefined,
  actions: [],
  notify: false,
  highlight: false,
  tweaks: {},
};

const HISTORICAL_ACTIONS: ReadonlySet<unknown> = new Set(['dont_notify', 'coalesce']);

const isAction = (value: JsonValue): value is PushAction => typeof value === 'string' || isJsonObject(value);

/**
 * Returns the actions to follow: without historical actions and without malformed ones.
 * Source: client-server API, "Historical Actions".
 */
export function effectiveActions(actions: readonly JsonValue[]): PushAction[] {
  return actions.filter(isAction).filter((action) => !HISTORICAL_ACTIONS.has(action));
}

/**
 * Interprets the actions of a rule. A `highlight` tweak without a value is true; other tweaks without a value are
 * dropped.
 * Source: client-server API, "Actions".
 */
export function outcomeOf(ruleId: string, actions: readonly JsonValue[]): PushOutcome {
  const effective = effectiveActions(actions);
  const tweaks = Object.fromEntries(effective.flatMap(tweakOf));
  return {
    ruleId,
    actions: effective,
    notify: effective.includes('notify'),
    highlight: Object.hasOwn(tweaks, 'highlight') && tweaks['highlight'] === true,
    tweaks,
  };
}

function tweakOf(action: PushAction): [name: string, value: JsonValue][] {
  if (typeof action === 'string') return [];
  const { set_tweak: name, value } = action;
  if (typeof name !== 'string') return [];
  if (value !== undefined) return [[name, value]];
  return name === 'highlight' ? [[name, true]] : [];
}
