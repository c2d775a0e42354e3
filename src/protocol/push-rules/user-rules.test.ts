import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DEFAULT_RULES } from './default-rules.ts';
import { RULE_KINDS } from './push-rule.ts';
import { predefinedRules } from './test/predefined-rules.ts';
import { effectiveRuleset, NO_USER_RULES, type UserPushRules } from './user-rules.ts';

const USER = '@alice:example.org';

describe('effectiveRuleset', () => {
  it('returns the rules of the specification in its order for a user without changes', () => {
    const { postcontent, ...ruleset } = effectiveRuleset(USER, NO_USER_RULES);
    assert.deepEqual(ruleset, {
      override: predefinedRules('override', USER),
      underride: predefinedRules('underride', USER),
      content: [],
      room: [],
      sender: [],
    });
    const kind = 'io.element.msc4306.thread_subscription';
    assert.deepEqual(
      postcontent.map(({ conditions }) => conditions),
      [[{ kind, subscribed: false }], [{ kind, subscribed: true }]],
    );
  });

  it('includes the rules removed in v1.17 at their places if legacyMentions is set', () => {
    const ruleset = effectiveRuleset('@alice.b:example.org:8448', NO_USER_RULES, { legacyMentions: true });
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

  it("puts the user's rules before the default rules but after the master rule", () => {
    const own = { rule_id: 'mine', enabled: true, actions: ['dont_notify', 'notify'] };
    const stored: UserPushRules = {
      rules: { ...NO_USER_RULES.rules, override: [own], underride: [own], room: [own] },
      changes: {},
    };
    const ruleset = effectiveRuleset(USER, stored);
    assert.deepEqual(
      ruleset.override.slice(0, 3).map((rule) => rule.rule_id),
      ['.m.rule.master', 'mine', '.m.rule.suppress_notices'],
    );
    assert.equal(ruleset.underride[0]!.rule_id, 'mine');
    assert.deepEqual(ruleset.room, [{ rule_id: 'mine', default: false, enabled: true, actions: ['notify'] }]);
  });

  it('applies changes to default rules and nothing else', () => {
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
    assert.equal(ruleset.underride.length, predefined.length);
  });

  it('has default rules with unique ids in each kind', () => {
    for (const kind of RULE_KINDS) {
      const ids = DEFAULT_RULES.filter((rule) => rule.kind === kind).map((rule) => rule.ruleId);
      assert.equal(new Set(ids).size, ids.length);
      assert.ok(ids.every((id) => id.startsWith('.')));
    }
  });
});
