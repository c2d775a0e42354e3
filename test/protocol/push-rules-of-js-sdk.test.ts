import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type MatrixClient, MatrixEvent } from 'matrix-js-sdk';
import { PushProcessor } from 'matrix-js-sdk/lib/pushprocessor.js';
import type { JsonObject } from '../../src/protocol/json.ts';
import {
  effectiveRuleset,
  NO_USER_RULES,
  type PushSubject,
  putRule,
  type Ruleset,
  type UserPushRules,
} from '../../src/protocol/push-rules/index.ts';
import { evaluatePushRules, subject } from '../support/inputs/push-subject.ts';

const USER = '@alice:example.org';

interface Room {
  readonly memberCount: number;
  readonly mayNotify: boolean;
}

/** Returns the rule that matrix-js-sdk, an independent implementation, matches for an event. */
function ruleOfSdk(
  ruleset: Ruleset,
  event: PushSubject,
  { memberCount, mayNotify }: Room,
): string | undefined {
  const currentState = {
    members: {},
    getMember: () => ({ name: 'Alice' }),
    getJoinedMemberCount: () => memberCount,
    mayTriggerNotifOfType: () => mayNotify,
  };
  const client = {
    pushRules: { global: structuredClone(ruleset) },
    credentials: { userId: USER },
    getSafeUserId: () => USER,
    supportsIntentionalMentions: () => true,
    getRoom: () => ({ currentState, getMember: () => ({ name: 'Alice' }) }),
  };
  const processor = new PushProcessor(client as unknown as MatrixClient);
  const { eventId: event_id, roomId: room_id, type, sender, content, originServerTs, stateKey } = event;
  const json = { event_id, room_id, type, sender, content, origin_server_ts: originServerTs };
  const state = stateKey === undefined ? {} : { state_key: stateKey };
  return processor.actionsAndRuleForEvent(new MatrixEvent({ ...json, ...state })).rule?.rule_id;
}

const optional = { requiredKeys: [] };
/** Spaces around `@room`: see `keys` for why the SDK and servers differ without them. */
const words = ['alice', 'cake', ' @room ', 'Alice', 'x', '_', ' ', '-', 'cakes', 'é', '*'];
const content = fc.record(
  {
    msgtype: fc.constantFrom('m.text', 'm.notice'),
    body: fc.array(fc.constantFrom(...words), { maxLength: 6 }).map((parts) => parts.join('')),
    membership: fc.constantFrom('invite', 'join'),
    'm.mentions': fc.record(
      { user_ids: fc.array(fc.constantFrom(USER, '@x:y', 5)), room: fc.constantFrom(true, false, 'true') },
      optional,
    ),
    'm.relates_to': fc.record({
      rel_type: fc.constantFrom('m.replace', 'm.thread'),
      event_id: fc.constant('$x'),
    }),
    n: fc.constantFrom(1, null, true, 'x', [1, 'x']),
  },
  optional,
) as fc.Arbitrary<JsonObject>;
const types = ['message', 'encrypted', 'member', 'tombstone', 'server_acl', 'topic'].map(
  (name) => `m.room.${name}`,
);
const event = fc
  .record({
    type: fc.constantFrom(...types, 'm.reaction', 'm.call.invite'),
    content,
    stateKey: fc.constantFrom(undefined, '', USER),
  })
  .map(subject);

/**
 * The SDK requires the word boundary to be a character of its own beside the match, so no pattern here begins
 * or ends with a non-word character. Other servers interpret the specification as this one does.
 */
const keys = [
  'content.body',
  'content.msgtype',
  'type',
  'content.m\\.relates_to.rel_type',
  'state_key',
  'sender',
];
const condition = fc.oneof(
  fc.record({
    kind: fc.constant('event_match'),
    key: fc.constantFrom(...keys),
    pattern: fc.constantFrom('cake', 'c*e', 'm.*', '*', 'alice*', '?ex?', 'm.thread', 'x'),
  }),
  fc.record({
    kind: fc.constantFrom('event_property_is', 'event_property_contains'),
    key: fc.constantFrom('content.n', 'content.m\\.mentions.room'),
    value: fc.constantFrom(1, null, true, 'x', 'true'),
  }),
  fc.record({ kind: fc.constant('room_member_count'), is: fc.constantFrom('2', '>2', '<=3', '>=3', '==3') }),
  fc.record({ kind: fc.constant('sender_notification_permission'), key: fc.constant('room') }),
  fc.constant({ kind: 'org.example.unknown' }),
);
const rule = fc.record({
  kind: fc.constantFrom('override', 'underride', 'content'),
  conditions: fc.array(condition, { maxLength: 2 }),
  pattern: fc.constantFrom('cake', 'al*e', 'x'),
});
const userRules = fc
  .array(rule, { maxLength: 3 })
  .map((rules) =>
    rules.reduce<UserPushRules>(
      (stored, { kind, ...body }, i) => putRule(stored, kind, `rule${i}`, { actions: ['notify'], ...body }),
      NO_USER_RULES,
    ),
  );
const room = fc.record({ memberCount: fc.integer({ min: 2, max: 4 }), mayNotify: fc.boolean() });

describe('push rules', () => {
  it('match the same rule as in matrix-js-sdk', () => {
    fc.assert(
      fc.property(event, userRules, room, (event, stored, room) => {
        const ruleset = effectiveRuleset(USER, stored);
        const outcome = evaluatePushRules(ruleset, event, {
          userId: USER,
          displayName: 'Alice',
          memberCount: room.memberCount,
          senderMayNotify: () => room.mayNotify,
        });
        assert.equal(outcome.ruleId, ruleOfSdk(ruleset, event, room));
      }),
      { numRuns: 3000 },
    );
  });
});
