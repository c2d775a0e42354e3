import type { CompiledRule, CompiledRuleset } from './compile.ts';
import { NO_OUTCOME, type PushOutcome } from './outcome.ts';
import type { PushEvent, PushMember } from './push-event.ts';

/**
 * Evaluates the rules of one member on an event and returns the outcome of the first rule that matches. The kinds are
 * evaluated in the order of the specification: `override`, `content`, `postcontent` (MSC4306), `room`, `sender`,
 * `underride`. An event does not notify its sender.
 * Source: client-server API, "Push Rules".
 */
export function evaluateRules(rules: CompiledRuleset, event: PushEvent, member: PushMember): PushOutcome {
  if (event.sender === member.userId) return NO_OUTCOME;
  event.resetSearchBudget();
  const rule =
    firstMatch(rules.override, event, member) ??
    firstMatch(rules.content, event, member) ??
    firstMatch(rules.postcontent, event, member) ??
    rules.room.get(event.roomId) ??
    rules.sender.get(event.sender) ??
    firstMatch(rules.underride, event, member);
  return rule?.outcome ?? NO_OUTCOME;
}

function firstMatch(
  rules: readonly CompiledRule[],
  event: PushEvent,
  member: PushMember,
): CompiledRule | undefined {
  for (const rule of rules) {
    if (rule.matches(event, member)) return rule;
  }
  return undefined;
}
