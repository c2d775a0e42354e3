import type { JsonObject, JsonValue } from '../../../src/protocol/json.ts';
import { compileRuleset } from '../../../src/protocol/push-rules/compile.ts';
import { evaluateRules } from '../../../src/protocol/push-rules/evaluate.ts';
import type { PushOutcome } from '../../../src/protocol/push-rules/outcome.ts';
import {
  PushEvent,
  type PushMember,
  type PushRoomFacts,
  type PushSubject,
} from '../../../src/protocol/push-rules/push-event.ts';
import type { Ruleset } from '../../../src/protocol/push-rules/push-rule.ts';

export const ALICE: PushMember = { userId: '@alice:example.org', displayName: 'Alice' };
export const ROOM: PushRoomFacts = { memberCount: 10, senderMayNotify: () => false };

/** A text message from Bob, with the given fields replaced. */
export function subject(more: Partial<PushSubject> = {}): PushSubject {
  return {
    eventId: '$event',
    roomId: '!room:example.org',
    type: 'm.room.message',
    stateKey: undefined,
    sender: '@bob:example.org',
    content: { msgtype: 'm.text', body: 'Hello' },
    originServerTs: 1_700_000_000_000,
    redacts: undefined,
    ...more,
  };
}

export const message = (content: JsonObject): PushSubject =>
  subject({ content: { msgtype: 'm.text', ...content } });

export const pushEvent = (more: Partial<PushSubject> = {}, room: Partial<PushRoomFacts> = {}): PushEvent =>
  new PushEvent(subject(more), { ...ROOM, ...room });

/** Evaluates a ruleset in the client format, valid or not, for one event and one member. */
export function evaluatePushRules(
  ruleset: Ruleset | JsonValue,
  event: PushSubject,
  context: PushRoomFacts & PushMember,
): PushOutcome {
  return evaluateRules(compileRuleset(ruleset), new PushEvent(event, context), context);
}
