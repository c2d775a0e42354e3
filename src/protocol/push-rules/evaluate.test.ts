import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  ALICE,
  evaluatePushRules,
  message,
  pushEvent,
  ROOM,
  subject,
} from '../../../test/support/inputs/push-subject.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { compileRuleset, compileUserRules } from './compile.ts';
import { evaluateRules } from './evaluate.ts';
import { NO_OUTCOME } from './outcome.ts';
import { PushEvent, type PushRoomFacts, type PushSubject, SEARCH_BUDGET } from './push-event.ts';
import type { PushRule, Ruleset } from './push-rule.ts';
import { effectiveRuleset, NO_USER_RULES } from './user-rules.ts';

function matchingRule(event: PushSubject, room: Partial<PushRoomFacts> = {}): string | undefined {
  const ruleset = effectiveRuleset(ALICE.userId, NO_USER_RULES);
  const outcome = evaluatePushRules(ruleset, event, { ...ROOM, ...room, ...ALICE });
  const compiled = compileUserRules(NO_USER_RULES);
  assert.deepEqual(evaluateRules(compiled, new PushEvent(event, { ...ROOM, ...room }), ALICE), outcome);
  return outcome.ruleId?.replace('.m.rule.', '');
}

const MODERATOR = { senderMayNotify: (key: string) => key === 'room' };

/** JSON that a client might have sent in place of rules. */
const json = (value: object): JsonValue => JSON.parse(JSON.stringify(value));
const state = (type: string, content: JsonObject = {}, stateKey = '') => subject({ type, content, stateKey });
const mentions = (value: JsonValue, more: JsonObject = {}) =>
  message({ body: 'hi', 'm.mentions': value, ...more });
const invite = (stateKey: string) => state('m.room.member', { membership: 'invite' }, stateKey);
const poll = (name: string) => subject({ type: `org.matrix.msc3381.poll.${name}`, content: {} });
const edit = { 'm.relates_to': { rel_type: 'm.replace', event_id: '$x' } };

describe('default push rules', () => {
  const cases: [rule: string | undefined, event: PushSubject, room?: Partial<PushRoomFacts>][] = [
    ['message', message({ body: 'hello' })],
    ['room_one_to_one', message({ body: 'hello' }), { memberCount: 2 }],
    ['encrypted', subject({ type: 'm.room.encrypted' })],
    ['encrypted_room_one_to_one', subject({ type: 'm.room.encrypted' }), { memberCount: 2 }],
    ['call', subject({ type: 'm.call.invite' })],
    ['suppress_notices', message({ msgtype: 'm.notice', body: '@alice:example.org' })],
    ['suppress_notices', mentions({ user_ids: [ALICE.userId] }, { msgtype: 'm.notice' })],
    ['invite_for_me', invite(ALICE.userId)],
    ['member_event', invite('@Alice:example.org')],
    ['member_event', invite('@carol:example.org')],
    ['member_event', state('m.room.member', { membership: 'join' }, ALICE.userId)],
    ['is_user_mention', mentions({ user_ids: ['@x:y', ALICE.userId] })],
    ['message', mentions({ user_ids: ALICE.userId })],
    ['message', mentions({ user_ids: ['@alice'] })],
    ['message', mentions([ALICE.userId])],
    ['is_room_mention', mentions({ room: true }), MODERATOR],
    ['message', mentions({ room: true }), {}],
    ['message', mentions({ room: 'true' }), MODERATOR],
    ['tombstone', state('m.room.tombstone')],
    [undefined, state('m.room.tombstone', {}, 'x')],
    [undefined, subject({ type: 'm.room.tombstone' })],
    ['reaction', subject({ type: 'm.reaction' })],
    ['room.server_acl', state('m.room.server_acl')],
    ['suppress_edits', message({ body: '* x', ...edit })],
    ['is_user_mention', mentions({ user_ids: [ALICE.userId] }, edit)],
    ['suppress_edits', subject({ type: 'm.room.encrypted', content: edit })],
    [undefined, state('m.room.topic', { topic: 'Alice' })],
    [undefined, subject({ sender: ALICE.userId })],
    ['.org.matrix.msc3930.rule.poll_response', poll('response')],
    ['.org.matrix.msc3930.rule.poll_start', poll('start')],
    ['.org.matrix.msc3930.rule.poll_start_one_to_one', poll('start'), { memberCount: 2 }],
    ['.org.matrix.msc3930.rule.poll_end', poll('end')],
    ['.org.matrix.msc3930.rule.poll_end_one_to_one', poll('end'), { memberCount: 2 }],
  ];
  for (const [rule, event, room] of cases) {
    it(`matches ${rule ?? 'no rule'} for ${event.type} ${JSON.stringify(event.content)} ${room === MODERATOR ? 'of a moderator' : ''}`, () => {
      assert.equal(matchingRule(event, room), rule);
    });
  }

  const legacyCases: [rule: string, event: PushSubject, room?: Partial<PushRoomFacts>][] = [
    ['contains_display_name', message({ body: 'hey ALICE' })],
    ['message', mentions({}, { body: 'hey ALICE @room' }), MODERATOR],
    ['roomnotif', message({ body: 'hey @room!' }), MODERATOR],
    ['message', message({ body: 'hey @room!' }), {}],
    ['is_user_mention', mentions({ user_ids: [ALICE.userId] }, { body: 'hey ALICE' })],
  ];
  for (const [rule, event, room] of legacyCases) {
    it(`matches ${rule} by the body for ${JSON.stringify(event.content)} ${room === MODERATOR ? 'of a moderator' : ''}`, () => {
      assert.equal(matchingRule(event, room), rule);
    });
  }

  it('matches contains_user_name for the localpart in the body', () => {
    const rules = compileUserRules(NO_USER_RULES);
    const member = { userId: '@carol:example.org', displayName: 'C' };
    const ruleFor = (body: string) =>
      evaluateRules(rules, pushEvent({ content: { body } }), member).ruleId?.replace('.m.rule.', '');
    assert.equal(ruleFor('Carol, hi'), 'contains_user_name');
    assert.equal(ruleFor('Caroline, hi'), 'message');
  });
});

describe('order of push rules', () => {
  const rule = (rule_id: string, more: Partial<PushRule> = {}): PushRule => ({
    rule_id,
    default: false,
    enabled: true,
    actions: [{ set_tweak: 'rule', value: rule_id }],
    ...more,
  });
  const everyKind: Ruleset = {
    override: [rule('o1'), rule('o2')],
    content: [rule('c1', { pattern: 'hello' }), rule('c2', { pattern: '*' })],
    postcontent: [rule('p1', { conditions: [] })],
    room: [rule('!other:example.org'), rule('!room:example.org')],
    sender: [rule('@carol:example.org'), rule('@bob:example.org')],
    underride: [rule('u1', { conditions: [] })],
  };
  const firstMatch = (ruleset: JsonValue | Ruleset) =>
    evaluatePushRules(ruleset, subject(), { ...ROOM, ...ALICE }).ruleId;
  const without = (...kinds: (keyof Ruleset)[]): Ruleset => ({
    ...everyKind,
    ...Object.fromEntries(kinds.map((kind) => [kind, []])),
  });

  it('evaluates override, content, postcontent, room, sender, underride in this order', () => {
    assert.equal(firstMatch(everyKind), 'o1');
    assert.equal(firstMatch(without('override')), 'c1');
    assert.equal(firstMatch(without('override', 'content')), 'p1');
    const evaluatedBefore = ['override', 'content', 'postcontent'] as const;
    assert.equal(firstMatch(without(...evaluatedBefore)), '!room:example.org');
    assert.equal(firstMatch(without(...evaluatedBefore, 'room')), '@bob:example.org');
    assert.equal(firstMatch(without(...evaluatedBefore, 'room', 'sender')), 'u1');
    assert.equal(firstMatch({}), undefined);
  });

  it('skips rules that are disabled, malformed or have unknown conditions', () => {
    const unknown = { kind: 'org.example.new' };
    const skippedRules = [
      null,
      'rule',
      { rule_id: 'no actions', enabled: true },
      { rule_id: 'not enabled', actions: [], enabled: 'true' },
      { rule_id: 5, enabled: true, actions: [] },
      { ...rule('odd conditions'), conditions: 'none' },
      { ...rule('unknown'), conditions: [{ kind: 'event_match', key: 'type', pattern: '*' }, unknown] },
      rule('disabled', { enabled: false }),
    ];
    assert.equal(firstMatch(json({ ...everyKind, override: [...skippedRules, rule('good')] })), 'good');
    assert.equal(firstMatch({ ...without('override'), content: [rule('no pattern')] }), 'p1');
  });

  it('uses the first of several rules with the same id', () => {
    const rules = [
      rule('!room:example.org', { actions: ['notify'] }),
      rule('!room:example.org', { actions: [] }),
    ];
    assert.equal(evaluatePushRules(json({ room: rules }), subject(), { ...ROOM, ...ALICE }).notify, true);
  });

  it('requires all conditions of a rule to match', () => {
    const conditions = (type: string) => [
      { kind: 'event_match', key: 'type', pattern: type },
      { kind: 'room_member_count', is: '>5' },
    ];
    const ruleset = {
      override: [rule('a', { conditions: conditions('x') }), rule('b', { conditions: conditions('m.*') })],
    };
    assert.equal(firstMatch(json(ruleset)), 'b');
  });

  it('lets the master rule silence all events', () => {
    const changes = { 'override/.m.rule.master': { enabled: true } };
    const rules = compileUserRules({ ...NO_USER_RULES, changes });
    const outcome = evaluateRules(
      rules,
      pushEvent({ content: { 'm.mentions': { user_ids: [ALICE.userId] } } }),
      ALICE,
    );
    assert.equal(outcome.ruleId, '.m.rule.master');
    assert.equal(outcome.notify, false);
  });
});

describe('push rule outcome', () => {
  const outcomeOf = (actions: JsonValue) =>
    evaluatePushRules({ override: [{ rule_id: 'r', enabled: true, actions }] }, subject(), {
      ...ROOM,
      ...ALICE,
    });
  const cases: [actions: JsonValue, notify: boolean, highlight: boolean, tweaks: JsonObject][] = [
    [[], false, false, {}],
    [['notify'], true, false, {}],
    [['dont_notify'], false, false, {}],
    [['coalesce', 'notify'], true, false, {}],
    [['notify', { set_tweak: 'highlight' }], true, true, { highlight: true }],
    [['notify', { set_tweak: 'highlight', value: false }], true, false, { highlight: false }],
    [['notify', { set_tweak: 'sound', value: 'ring' }], true, false, { sound: 'ring' }],
    [[{ set_tweak: 'sound' }, { set_tweak: 3 }, {}, 'x'], false, false, {}],
    [
      [{ set_tweak: '__proto__', value: { highlight: true } }],
      false,
      false,
      JSON.parse('{"__proto__":{"highlight":true}}'),
    ],
  ];
  for (const [actions, notify, highlight, tweaks] of cases) {
    it(`sets notify ${notify} and highlight ${highlight} for ${JSON.stringify(actions)}`, () => {
      const outcome = outcomeOf(actions);
      assert.equal(outcome.notify, notify);
      assert.equal(outcome.highlight, highlight);
      assert.equal(JSON.stringify(outcome.tweaks), JSON.stringify(tweaks));
    });
  }

  it('keeps unknown actions and drops historical and malformed ones', () => {
    assert.deepEqual(outcomeOf(['dont_notify', 'org.example.wave', 1, null, { a: 1 }]).actions, [
      'org.example.wave',
      { a: 1 },
    ]);
  });

  it('returns no outcome for the sender of the event', () => {
    const rules = compileRuleset({ override: [{ rule_id: 'r', enabled: true, actions: ['notify'] }] });
    assert.equal(evaluateRules(rules, pushEvent({ sender: ALICE.userId }), ALICE), NO_OUTCOME);
  });
});

describe('evaluateRules with hostile rules', () => {
  const body = 'a '.repeat(32_000);
  const rule = (i: number) => ({
    rule_id: `r${i}`,
    enabled: true,
    actions: ['notify'],
    pattern: `${'*a'.repeat(100)}b`,
  });

  it('stops matching when the search budget of the member is spent', () => {
    const event = pushEvent({ content: { body } });
    event.resetSearchBudget();
    assert.equal(event.spendSearchSteps(SEARCH_BUDGET), true);
    assert.equal(event.spendSearchSteps(1), false);
    const catchAll = { rule_id: 'all', enabled: true, actions: [], pattern: '*a'.repeat(100) };
    const evaluate = (count: number) => {
      const content = [...Array.from({ length: count }, (_, i) => rule(i)), catchAll];
      return evaluateRules(compileRuleset({ content }), event, ALICE).ruleId;
    };
    assert.equal(evaluate(1), 'all');
    assert.equal(evaluate(1000), undefined);
  });

  it('searches a long message for a thousand keywords, and stops at keywords that occur too often', () => {
    const keyword = (pattern: string) => ({ rule_id: pattern, enabled: true, actions: ['notify'], pattern });
    const found = (keywords: readonly string[], text: string) => {
      const rules = compileRuleset({ content: keywords.map(keyword) });
      return evaluateRules(rules, pushEvent({ content: { body: text } }), ALICE).ruleId;
    };
    const absent = (count: number) => Array.from({ length: count }, (_, i) => `keyword${i}`);
    assert.equal(found([...absent(1_000), 'cake'], `${'word '.repeat(1_000)} cake`), 'cake');
    const frequent = Array.from({ length: 100 }, (_, i) => 'ab'.repeat(i + 1));
    assert.equal(found([...frequent, 'cake'], `x${'ab'.repeat(30_000)} cake`), undefined);
  });

  it('does not let one member change the outcome of another', () => {
    const room = { ...ROOM, ...MODERATOR };
    const event = new PushEvent(message({ body: `@room ${body}` }), room);
    const defaults = effectiveRuleset('', NO_USER_RULES);
    const slow = Array.from({ length: 1000 }, (_, i) => ({
      ...rule(i),
      conditions: [{ kind: 'event_match', key: 'content.body', pattern: rule(i).pattern }],
    }));
    const slowRules = compileRuleset(json({ ...defaults, override: [...slow, ...defaults.override] }));
    assert.equal(evaluateRules(slowRules, event, ALICE).ruleId, '.m.rule.roomnotif');
    assert.equal(evaluateRules(compileRuleset(defaults), event, ALICE).ruleId, '.m.rule.roomnotif');
  });
});
