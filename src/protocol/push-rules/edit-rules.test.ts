import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { MatrixError } from '../errors.ts';
import { MAX_GLOB_LENGTH } from '../globs/glob.ts';
import type { JsonValue } from '../json.ts';
import {
  deleteRule,
  findRule,
  MAX_USER_RULES,
  parseRuleKind,
  putRule,
  type RulePlacement,
  setRuleActions,
  setRuleEnabled,
} from './edit-rules.ts';
import type { RuleKind, UserRuleKind } from './push-rule.ts';
import { effectiveRuleset, NO_USER_RULES, type UserPushRules } from './user-rules.ts';

const NOTIFY = { actions: ['notify'] };
const USER = '@alice:example.org';

const fails =
  (errcode: string, status = 400) =>
  (error: unknown) =>
    error instanceof MatrixError && error.errcode === errcode && error.status === status;

/** Adds rules one after the other, so that the last id comes first in the rules. */
const withRooms = (...ids: string[]): UserPushRules =>
  ids.reduce((rules, id) => putRule(rules, 'room', id, NOTIFY), NO_USER_RULES);
const order = (stored: UserPushRules) => stored.rules.room.map((rule) => rule.rule_id).join(' ');

describe('putRule', () => {
  it('adds an enabled rule before all others of its kind', () => {
    const stored = withRooms('a', 'b');
    assert.deepEqual(stored.rules.room, [
      { rule_id: 'b', enabled: true, actions: ['notify'] },
      { rule_id: 'a', enabled: true, actions: ['notify'] },
    ]);
    assert.equal(NO_USER_RULES.rules.room.length, 0);
  });

  const placements: [id: string, placement: RulePlacement, expected: string][] = [
    ['x', {}, 'x c b a'],
    ['x', { before: 'b' }, 'c x b a'],
    ['x', { after: 'b' }, 'c b x a'],
    ['x', { before: 'c' }, 'x c b a'],
    ['x', { after: 'a' }, 'c b a x'],
    ['x', { before: 'a', after: 'c' }, 'c b x a'],
    ['b', {}, 'c b a'],
    ['b', { before: 'c' }, 'b c a'],
    ['b', { after: 'a' }, 'c a b'],
    ['b', { before: 'b' }, 'c b a'],
    ['b', { after: 'b' }, 'c b a'],
  ];
  for (const [id, placement, expected] of placements) {
    it(`puts ${id} into "c b a" with ${JSON.stringify(placement)}: ${expected}`, () => {
      assert.equal(order(putRule(withRooms('a', 'b', 'c'), 'room', id, NOTIFY, placement)), expected);
    });
  }

  for (const [description, anchor] of [
    ['an unknown rule', 'unknown'],
    ['a default rule', '.m.rule.message'],
    ['itself', 'x'],
  ] as const) {
    it(`throws M_UNKNOWN when a new rule is placed before or after ${description}`, () => {
      for (const placement of [{ before: anchor }, { after: anchor }]) {
        assert.throws(() => putRule(withRooms('a'), 'room', 'x', NOTIFY, placement), fails('M_UNKNOWN'));
      }
    });
  }

  it('updates a rule and keeps it disabled', () => {
    const disabled = setRuleEnabled(withRooms('a'), 'room', 'a', false);
    const updated = putRule(disabled, 'room', 'a', { actions: [] });
    assert.deepEqual(updated.rules.room, [{ rule_id: 'a', enabled: false, actions: [] }]);
  });

  for (const id of ['', '.m.rule.message', '.mine', 'a/b', 'a\\b']) {
    it(`throws M_INVALID_PARAM for the rule id ${JSON.stringify(id)}`, () => {
      assert.throws(() => putRule(NO_USER_RULES, 'room', id, NOTIFY), fails('M_INVALID_PARAM'));
    });
  }

  const bodies: [kind: RuleKind, body: JsonValue, errcode: string][] = [
    ['room', null, 'M_BAD_JSON'],
    ['room', {}, 'M_MISSING_PARAM'],
    ['room', { actions: 'notify' }, 'M_BAD_JSON'],
    ['room', { actions: [1] }, 'M_BAD_JSON'],
    ['room', { actions: ['notfiy'] }, 'M_BAD_JSON'],
    ['content', NOTIFY, 'M_MISSING_PARAM'],
    ['content', { ...NOTIFY, pattern: 1 }, 'M_BAD_JSON'],
    ['content', { ...NOTIFY, pattern: 'x'.repeat(MAX_GLOB_LENGTH + 1) }, 'M_BAD_JSON'],
    ['override', { ...NOTIFY, conditions: {} }, 'M_BAD_JSON'],
    ['override', { ...NOTIFY, conditions: [{}] }, 'M_BAD_JSON'],
    ['override', { ...NOTIFY, conditions: ['event_match'] }, 'M_BAD_JSON'],
    ['underride', { ...NOTIFY, conditions: new Array(101).fill({ kind: 'x' }) }, 'M_BAD_JSON'],
    [
      'underride',
      { ...NOTIFY, conditions: [{ kind: 'event_match', pattern: 'x'.repeat(2000) }] },
      'M_BAD_JSON',
    ],
  ];
  for (const [kind, body, errcode] of bodies) {
    it(`throws ${errcode} for ${JSON.stringify(body)?.slice(0, 60)} as ${kind} rule`, () => {
      assert.throws(() => putRule(NO_USER_RULES, kind, 'x', body), fails(errcode));
    });
  }

  it('stores only the fields that rules of the kind have, with unknown conditions and actions as given', () => {
    const conditions = [{ kind: 'org.example.new', extra: 1 }];
    const actions = ['dont_notify', 'coalesce', { set_tweak: 'flash' }];
    const body = { actions, conditions, pattern: 'cake', enabled: false, default: true };
    const kept = { rule_id: 'x', enabled: true, actions };
    const put = (kind: UserRuleKind) => putRule(NO_USER_RULES, kind, 'x', body).rules[kind][0];
    assert.deepEqual(put('override'), { ...kept, conditions });
    assert.deepEqual(put('content'), { ...kept, pattern: 'cake' });
    assert.deepEqual(put('sender'), kept);
    assert.deepEqual(putRule(NO_USER_RULES, 'override', 'x', NOTIFY).rules.override[0]?.conditions, []);
  });

  it('refuses user rules of the kind postcontent, and enables its default rule', () => {
    const kind = 'postcontent';
    assert.throws(() => putRule(NO_USER_RULES, kind, 'x', NOTIFY), fails('M_INVALID_PARAM'));
    assert.throws(() => deleteRule(NO_USER_RULES, kind, 'x'), fails('M_NOT_FOUND', 404));
    const ruleId = '.io.element.msc4306.rule.unsubscribed_thread';
    const { changes } = setRuleEnabled(NO_USER_RULES, kind, ruleId, true);
    assert.deepEqual(changes, { [`postcontent/${ruleId}`]: { enabled: true } });
  });

  it('throws M_TOO_LARGE for a rule when the user has MAX_USER_RULES rules of all kinds in total', () => {
    const rule = { rule_id: 'r', enabled: true, actions: [] };
    const maxRules = Array.from({ length: MAX_USER_RULES }, (_, i) => ({ ...rule, rule_id: `r${i}` }));
    const full: UserPushRules = { rules: { ...NO_USER_RULES.rules, sender: maxRules }, changes: {} };
    assert.throws(() => putRule(full, 'room', 'x', NOTIFY), fails('M_TOO_LARGE', 413));
    assert.equal(putRule(full, 'sender', 'r5', NOTIFY).rules.sender.length, MAX_USER_RULES);
  });
});

describe('putRule: size of patterns', () => {
  it('throws M_TOO_LARGE for a rule when the patterns of all rules would be too long in total', () => {
    const long = 'x'.repeat(MAX_GLOB_LENGTH);
    const conditions = Array.from({ length: 100 }, () => ({
      kind: 'event_match',
      key: 'type',
      pattern: long,
    }));
    const body = { ...NOTIFY, conditions };
    const two = putRule(putRule(NO_USER_RULES, 'override', 'a', body), 'underride', 'b', body);
    assert.throws(() => putRule(two, 'override', 'c', body), fails('M_TOO_LARGE', 413));
    assert.equal(putRule(two, 'override', 'a', body).rules.override.length, 1);
  });
});

describe('changes of push rules', () => {
  it('deletes rules of the user but not default rules', () => {
    assert.equal(order(deleteRule(withRooms('a', 'b'), 'room', 'a')), 'b');
    assert.throws(() => deleteRule(NO_USER_RULES, 'room', 'a'), fails('M_NOT_FOUND', 404));
    assert.throws(() => deleteRule(NO_USER_RULES, 'underride', '.m.rule.message'), fails('M_NOT_FOUND', 404));
  });

  it('changes the actions of rules of the user', () => {
    assert.deepEqual(setRuleActions(withRooms('a'), 'room', 'a', ['x']).rules.room[0]?.actions, ['x']);
  });

  it('stores changes of default rules', () => {
    const disabled = setRuleEnabled(NO_USER_RULES, 'underride', '.m.rule.message', false);
    const changed = setRuleActions(disabled, 'underride', '.m.rule.message', ['x']);
    const rule = findRule(effectiveRuleset(USER, changed), 'underride', '.m.rule.message');
    assert.equal(rule.enabled, false);
    assert.deepEqual(rule.actions, ['x']);
    assert.equal(
      setRuleEnabled(changed, 'underride', '.m.rule.message', true).changes['underride/.m.rule.message']
        ?.enabled,
      true,
    );
  });

  it('throws M_NOT_FOUND for rules that do not exist', () => {
    const ruleset = effectiveRuleset(USER, NO_USER_RULES);
    const notFound = fails('M_NOT_FOUND', 404);
    assert.throws(() => findRule(ruleset, 'override', '.m.rule.message'), notFound);
    assert.throws(() => setRuleEnabled(NO_USER_RULES, 'override', '.m.rule.message', true), notFound);
    assert.throws(() => setRuleActions(NO_USER_RULES, 'room', '!x:y', []), notFound);
    assert.throws(() => setRuleEnabled(NO_USER_RULES, 'room', '__proto__', true), notFound);
  });

  it('parses known kinds of rules, and throws M_INVALID_PARAM for others', () => {
    assert.equal(parseRuleKind('underride'), 'underride');
    assert.throws(() => parseRuleKind('global'), fails('M_INVALID_PARAM'));
    assert.throws(() => parseRuleKind('constructor'), fails('M_INVALID_PARAM'));
  });
});

describe('random sequences of edits', () => {
  const id = fc.constantFrom('a', 'b', 'c', 'd');
  const placement = fc.record({
    before: fc.option(id, { nil: undefined }),
    after: fc.option(id, { nil: undefined }),
  });
  const edit = fc.oneof(
    fc.record({ id, placement }).map(
      ({ id, placement }) =>
        (stored: UserPushRules) =>
          putRule(stored, 'room', id, NOTIFY, placement),
    ),
    id.map((each) => (stored: UserPushRules) => deleteRule(stored, 'room', each)),
  );

  it('random edits keep rule ids unique and throw only MatrixErrors', () => {
    fc.assert(
      fc.property(fc.array(edit, { maxLength: 30 }), (edits) => {
        let stored = NO_USER_RULES;
        for (const apply of edits) {
          try {
            stored = apply(stored);
          } catch (error) {
            assert.ok(error instanceof MatrixError);
          }
          const ids = stored.rules.room.map((rule) => rule.rule_id);
          assert.equal(new Set(ids).size, ids.length);
        }
      }),
    );
  });
});
