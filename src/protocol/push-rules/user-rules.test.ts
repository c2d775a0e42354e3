import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DEFAULT_RULES } from './default-rules.ts';
import { RULE_KINDS } from './push-rule.ts';
import { predefinedRules } from './test/predefined-rules.ts';
import { effectiveRuleset, NO_USER_RULES, type UserPushRules } from './user-rules.ts';

const USER = '@alice:example.org';

describe('effectiveRuleset', () => {
  it('returns the rules of the specification in its order for a user without changes', () => {
    const { postcontent, content: _content, ...ruleset } = effectiveRuleset(USER, NO_USER_RULES);
    const removed = ['.m.rule.contains_display_name', '.m.rule.roomnotif'];
    const isOfSpecification = ({ rule_id }: { rule_id: string }) =>
      !rule_id.startsWith('.org.matrix.') && !removed.includes(rule_id);
    assert.deepEqual(ruleset.override.filter(isOfSpecification), predefinedRules('override', USER));
    assert.deepEqual(ruleset.underride.filter(isOfSpecification), predefinedRules('underride', USER));
    const { override: _override, underride: _underride, ...others } = ruleset;
    assert.deepEqual(others, {
      room: [],
      sender: [],
    });
    const kind = 'io.element.msc4306.thread_subscription';
    assert.deepEqual(
      postcontent.map(({ conditions }) => conditions),
      [[{ kind, subscribed: false }], [{ kind, subscribed: true }]],
    );
  });

  it('includes the rules that the specification removed in v1.17, at their former places', () => {
    const ruleset = effectiveRuleset('@alice.b:example.org:8448', NO_USER_RULES);
    assert.deepEqual(
      ruleset.override.map((rule) => rule.rule_id).slice(3, 9),
      [
        'member_event',
        'is_user_mention',
        'contains_display_name',
        'is_room_mention',
        'roomnotif',
        'tombstone',
      ].map((name) => `.m.rule.${name}`),
    );
    assert.deepEqual(ruleset.override[5]!.conditions, [{ kind: 'contains_display_name' }]);
    assert.deepEqual(ruleset.content, [
      {
        rule_id: '.m.rule.contains_user_name',
        default: true,
        enabled: true,
        pattern: 'alice.b',
        actions: ['notify', { set_tweak: 'sound', value: 'default' }, { set_tweak: 'highlight' }],
      },
    ]);
  });

  it('includes the rules for polls (MSC3930) at the end of their kinds', () => {
    const { override, underride } = effectiveRuleset(USER, NO_USER_RULES);
    const type = (name: string) => ({
      kind: 'event_match',
      key: 'type',
      pattern: `org.matrix.msc3381.poll.${name}`,
    });
    const rule = (name: string, conditions: object[], actions: unknown[]) => ({
      rule_id: `.org.matrix.msc3930.rule.poll_${name}`,
      default: true,
      enabled: true,
      conditions,
      actions,
    });
    const two = { kind: 'room_member_count', is: '2' };
    const loud = ['notify', { set_tweak: 'sound', value: 'default' }];
    assert.deepEqual(override.at(-1), rule('response', [type('response')], []));
    assert.deepEqual(underride.slice(-4), [
      rule('start_one_to_one', [two, type('start')], loud),
      rule('start', [type('start')], ['notify']),
      rule('end_one_to_one', [two, type('end')], loud),
      rule('end', [type('end')], ['notify']),
    ]);
  });

  it("puts the user's rules before the default rules but after the master rule", () => {
    const ownRule = { rule_id: 'mine', enabled: true, actions: ['dont_notify', 'notify'] };
    const stored: UserPushRules = {
      rules: { ...NO_USER_RULES.rules, override: [ownRule], underride: [ownRule], room: [ownRule] },
      changes: {},
    };
    const ruleset = effectiveRuleset(USER, stored);
    assert.deepEqual(
      ruleset.override.slice(0, 3).map((rule) => rule.rule_id),
      ['.m.rule.master', 'mine', '.m.rule.suppress_notices'],
    );
    assert.equal(ruleset.underride[0]!.rule_id, 'mine');
    assert.deepEqual(ruleset.room, [{ ...ownRule, default: false }]);
  });

  it('applies stored changes to default rules, and ignores a change of a rule that does not exist', () => {
    const stored: UserPushRules = {
      ...NO_USER_RULES,
      changes: {
        'override/.m.rule.master': { enabled: true },
        'underride/.m.rule.message': { actions: [] },
        'underride/.m.rule.gone': { enabled: false },
      },
    };
    const ruleset = effectiveRuleset(USER, stored);
    assert.equal(ruleset.override[0]!.enabled, true);
    const predefined = predefinedRules('underride', USER);
    assert.deepEqual(ruleset.underride[3], { ...predefined[3], actions: [] });
    assert.equal(ruleset.underride.length, effectiveRuleset(USER, NO_USER_RULES).underride.length);
  });

  it('has default rules with unique ids in each kind', () => {
    for (const kind of RULE_KINDS) {
      const ids = DEFAULT_RULES.filter((rule) => rule.kind === kind).map((rule) => rule.ruleId);
      assert.equal(new Set(ids).size, ids.length);
      assert.ok(ids.every((id) => id.startsWith('.')));
    }
  });
});
