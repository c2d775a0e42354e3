import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type IPushRules, type MatrixClient, MatrixEvent } from 'matrix-js-sdk';
import { PushProcessor } from 'matrix-js-sdk/lib/pushprocessor.js';
import type { JsonObject } from '../../src/protocol/json.ts';
import {
  effectiveRuleset,
  NO_USER_RULES,
  type PushAction,
  type PushSubject,
  putRule,
  type RuleKind,
  type Ruleset,
  setRuleActions,
  setRuleEnabled,
  type UserPushRules,
} from '../../src/protocol/push-rules/index.ts';
import { evaluatePushRules, subject } from '../support/inputs/push-subject.ts';
import { runs } from '../support/inputs/thoroughness.ts';

const USER = '@alice:example.org';

type RewriteLog = Parameters<typeof PushProcessor.rewriteDefaultRules>[0];

interface Room {
  readonly memberCount: number;
  readonly mayNotify: boolean;
}

/** The rule that matches, whether it notifies, and its tweaks; all absent where none matches. */
interface Outcome {
  readonly ruleId?: string | undefined;
  readonly notify?: boolean | undefined;
  readonly tweaks?: object | undefined;
}

/**
 * Returns the rules in the order into which the SDK's client brings received rules. Leaves out the rules that the
 * client adds: those for calls (MSC3401), and for server ACLs under an unstable name.
 */
function rulesInSdk(ruleset: Ruleset): IPushRules {
  const silentLog = { warn: () => undefined } as unknown as RewriteLog;
  const present = { global: structuredClone(ruleset) } as unknown as IPushRules;
  const { global, ...others } = PushProcessor.rewriteDefaultRules(silentLog, present, USER);
  const knownRuleIds = new Set([...ruleset.override, ...ruleset.underride].map((rule) => rule.rule_id));
  const [override, underride] = [global.override, global.underride].map((rules = []) =>
    rules.filter((rule) => knownRuleIds.has(rule.rule_id)),
  );
  return { ...others, global: { ...global, override: override!, underride: underride! } };
}

/** Returns what matrix-js-sdk, an independent implementation, decides for an event. */
function outcomeOfSdk(ruleset: Ruleset, event: PushSubject, { memberCount, mayNotify }: Room): Outcome {
  const currentState = {
    members: {},
    getMember: () => ({ name: 'Alice' }),
    getJoinedMemberCount: () => memberCount,
    mayTriggerNotifOfType: () => mayNotify,
  };
  const client = {
    pushRules: rulesInSdk(ruleset),
    credentials: { userId: USER },
    getSafeUserId: () => USER,
    supportsIntentionalMentions: () => true,
    getRoom: () => ({ currentState, getMember: () => ({ name: 'Alice' }) }),
  };
  const processor = new PushProcessor(client as unknown as MatrixClient);
  const { eventId: event_id, roomId: room_id, type, sender, content, originServerTs, stateKey } = event;
  // The SDK compares sender rules with `user_id`, the name of `sender` in the first version of the API.
  const json = {
    event_id,
    room_id,
    type,
    sender,
    user_id: sender,
    content,
    origin_server_ts: originServerTs,
  };
  const state = stateKey === undefined ? {} : { state_key: stateKey };
  const { rule, actions } = processor.actionsAndRuleForEvent(new MatrixEvent({ ...json, ...state }));
  if (!rule || !actions) return {};
  const { highlight, ...tweaks } = actions.tweaks;
  // For content rules without a highlight tweak, the SDK highlights, but the specification does not.
  const isSet = rule.actions.some((action) => typeof action === 'object' && action.set_tweak === 'highlight');
  const allTweaks = isSet ? { highlight, ...tweaks } : tweaks;
  return { ruleId: rule.rule_id, notify: actions.notify, tweaks: allTweaks };
}

const optional = { requiredKeys: [] };
/**
 * `@room` has spaces around it: before and after a pattern, the SDK requires the beginning or end of the text, or a
 * character that is not a word character. Between a word and `@`, servers accept a word boundary.
 */
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
const poll = (name: string) => `org.matrix.msc3381.poll.${name}`;
const senders = ['@bob:example.org', '@carol:example.org', USER];
const rooms = ['!room:example.org', '!other:example.org'];
const types = ['message', 'redaction', 'encrypted', 'member', 'tombstone', 'server_acl', 'topic'].map(
  (name) => `m.room.${name}`,
);
const event = fc
  .record({
    type: fc.constantFrom(...types, ...['start', 'response', 'end'].map(poll), 'm.reaction', 'm.call.invite'),
    content,
    sender: fc.constantFrom(...senders),
    roomId: fc.constantFrom(...rooms),
    stateKey: fc.constantFrom(undefined, '', USER),
  })
  .map(subject);

const keys = [
  'content.body',
  'content.msgtype',
  'type',
  'content.m\\.relates_to.rel_type',
  'state_key',
  'sender',
  'room_id',
];

/**
 * A condition of a rule. Patterns begin and end with word characters or wildcards, because the word boundaries of the
 * SDK and of this server differ at other characters, as with `@room`.
 */
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
const actions = fc.array(
  fc.constantFrom<PushAction>(
    'notify',
    'dont_notify',
    'coalesce',
    { set_tweak: 'sound', value: 'default' },
    { set_tweak: 'sound', value: 'ring' },
    { set_tweak: 'highlight' },
    { set_tweak: 'highlight', value: false },
    { set_tweak: 'org.example.flash', value: 3 },
  ),
  { maxLength: 3 },
);
const rule = fc.record({
  kind: fc.constantFrom('override', 'underride', 'content'),
  ruleId: fc.constantFrom('a', 'b', 'c', 'd'),
  conditions: fc.array(condition, { maxLength: 2 }),
  pattern: fc.constantFrom('cake', 'al*e', 'x'),
  actions,
});
const namedRule = fc.oneof(
  fc.record({ kind: fc.constant('room'), ruleId: fc.constantFrom(...rooms), actions }),
  fc.record({ kind: fc.constant('sender'), ruleId: fc.constantFrom(...senders), actions }),
);
/** A change of a default or user rule: whether the rule is enabled, and its actions. `pick` selects the rule. */
const change = fc.record({ pick: fc.nat(100), enabled: fc.boolean(), actions: fc.option(actions) });
const userRules = fc
  .record({
    rules: fc.array(fc.oneof(rule, rule, namedRule), { maxLength: 4 }),
    changes: fc.array(change, { maxLength: 3 }),
  })
  .map(({ rules, changes }) => {
    const initialRules = rules.reduce<UserPushRules>(
      (stored, { kind, ruleId, ...body }) => putRule(stored, kind as RuleKind, ruleId, body),
      NO_USER_RULES,
    );
    return changes.reduce((stored, { pick, enabled, actions }) => {
      const present = Object.entries(effectiveRuleset(USER, stored)) as [RuleKind, Ruleset[RuleKind]][];
      const ids = present.flatMap(([kind, ofKind]) => ofKind.map((rule) => [kind, rule.rule_id] as const));
      const [kind, id] = ids[pick % ids.length]!;
      const set = setRuleEnabled(stored, kind, id, enabled);
      return actions ? setRuleActions(set, kind, id, actions) : set;
    }, initialRules);
  });
const room = fc.record({ memberCount: fc.integer({ min: 2, max: 4 }), mayNotify: fc.boolean() });

describe('push rules', () => {
  it('the same rule as in matrix-js-sdk matches, with the same actions, for random events and rulesets', () => {
    fc.assert(
      fc.property(event, userRules, room, (event, stored, room) => {
        const ruleset = effectiveRuleset(USER, stored);
        const { ruleId, notify, tweaks } = evaluatePushRules(ruleset, event, {
          userId: USER,
          displayName: 'Alice',
          memberCount: room.memberCount,
          senderMayNotify: () => room.mayNotify,
        });
        const outcome = ruleId === undefined ? {} : { ruleId, notify, tweaks };
        assert.deepEqual(outcome, outcomeOfSdk(ruleset, event, room));
      }),
      { numRuns: runs(10_000) },
    );
  });
});
