import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ALICE, evaluatePushRules, subject } from '../../../test/support/inputs/push-subject.ts';
import { runs } from '../../../test/support/inputs/thoroughness.ts';
import { MatrixError } from '../errors.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { compileRuleset } from './compile.ts';
import { putRule } from './edit-rules.ts';
import { evaluateRules } from './evaluate.ts';
import { PushEvent } from './push-event.ts';
import { RULE_KINDS } from './push-rule.ts';
import { NO_USER_RULES, userRulesOf } from './user-rules.ts';

const json = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<JsonValue>;
const content = fc.dictionary(
  fc.oneof(fc.constantFrom('body', 'm.mentions', 'msgtype', '__proto__'), fc.string()),
  json,
  {
    noNullPrototype: true,
  },
) as fc.Arbitrary<JsonObject>;

/** A value of the expected kind, or any JSON in its place. */
const orAnyJson = (usual: fc.Arbitrary<JsonValue>): fc.Arbitrary<JsonValue> =>
  fc.oneof({ weight: 4, arbitrary: usual }, { weight: 1, arbitrary: json });
const text = fc.string({
  unit: fc.constantFrom('a', '*', '?', ' ', '.', '\\', 'content', 'body', 'type', '😀'),
});
const condition = fc.record({
  kind: orAnyJson(
    fc.constantFrom(
      'event_match',
      'event_property_is',
      'event_property_contains',
      'contains_display_name',
      'room_member_count',
      'sender_notification_permission',
      'unknown',
    ),
  ),
  key: orAnyJson(fc.oneof(text, fc.constantFrom('content.body', 'type', 'content.m\\.mentions.room'))),
  pattern: orAnyJson(text),
  value: json,
  is: orAnyJson(fc.constantFrom('2', '>=2', '<0', '==')),
});
const rule = fc.record({
  rule_id: orAnyJson(fc.oneof(text, fc.constantFrom('.m.rule.message', '.m.rule.is_user_mention'))),
  default: orAnyJson(fc.boolean()),
  enabled: orAnyJson(fc.boolean()),
  actions: orAnyJson(fc.array(orAnyJson(fc.constantFrom('notify', 'dont_notify')))),
  conditions: orAnyJson(fc.array(orAnyJson(condition), { maxLength: 3 })),
  pattern: orAnyJson(text),
});
const ruleset = orAnyJson(
  fc.record(
    Object.fromEntries(
      RULE_KINDS.map((kind) => [kind, orAnyJson(fc.array(orAnyJson(rule), { maxLength: 4 }))]),
    ),
  ),
);

describe('push rules: arbitrary JSON', () => {
  it('evaluates arbitrary JSON in rules and events without throwing', () => {
    fc.assert(
      fc.property(
        ruleset,
        content,
        fc.option(fc.string(), { nil: undefined }),
        (rules, content, stateKey) => {
          const context = { ...ALICE, memberCount: 2, senderMayNotify: () => true };
          const outcome = evaluatePushRules(rules, subject({ content, stateKey }), context);
          assert.equal(typeof outcome.notify, 'boolean');
        },
      ),
      { numRuns: runs(2000) },
    );
  });

  it('gives each member the same outcome with a PushEvent that all members share as with a PushEvent of their own', () => {
    const member = fc.record({
      userId: fc.constantFrom('@a:b', '@bob:example.org'),
      displayName: fc.constantFrom('a', ''),
    });
    const members = fc.array(fc.tuple(ruleset, member), { maxLength: 4 });
    fc.assert(
      fc.property(members, content, (members, content) => {
        const room = { memberCount: 2, senderMayNotify: () => true };
        const shared = new PushEvent(subject({ content }), room);
        for (const [rules, member] of members) {
          const alone = evaluatePushRules(rules, subject({ content }), { ...room, ...member });
          assert.deepEqual(evaluateRules(compileRuleset(rules), shared, member), alone);
        }
      }),
    );
  });

  it('refuses arbitrary JSON as the body of a rule, or stores it as a well-formed rule', () => {
    fc.assert(
      fc.property(fc.constantFrom(...RULE_KINDS), text, orAnyJson(rule), (kind, ruleId, body) => {
        try {
          const [stored] = userRulesOf(putRule(NO_USER_RULES, kind, ruleId, body), kind);
          assert.equal(stored?.rule_id, ruleId);
          assert.ok(Array.isArray(stored?.actions));
        } catch (error) {
          assert.ok(error instanceof MatrixError, String(error));
        }
      }),
      { numRuns: runs(2000) },
    );
  });
});
