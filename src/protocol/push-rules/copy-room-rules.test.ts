import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { copyRoomRules } from './copy-room-rules.ts';
import { putRule, setRuleEnabled } from './edit-rules.ts';
import type { UserRuleKind } from './push-rule.ts';
import { NO_USER_RULES, type UserPushRules } from './user-rules.ts';

const from = '!old:example.org';
const to = '!new:example.org';
const isRoom = (roomId: string) => ({ kind: 'event_match', key: 'room_id', pattern: roomId });
const isText = { kind: 'event_match', key: 'content.msgtype', pattern: 'm.text' };

const put = (rules: UserPushRules, kind: UserRuleKind, id: string, body: object = {}) =>
  putRule(rules, kind, id, { actions: [], ...body });

describe('copyRoomRules', () => {
  it('copies rules that are named after the room, and rules with a condition about it, in their order', () => {
    let rules = put(NO_USER_RULES, 'room', from, { actions: ['notify'] });
    rules = put(rules, 'override', 'texts only', { conditions: [isText, isRoom(from)] });
    rules = put(rules, 'override', from, { conditions: [isRoom(from)] });
    rules = put(rules, 'underride', `quiet ${from}`, { conditions: [isRoom(from)] });
    rules = put(rules, 'override', 'elsewhere', { conditions: [isRoom('!other:example.org')] });
    const { override, room, underride } = copyRoomRules(rules, from, to).rules;
    assert.deepEqual(
      override.map(({ rule_id: id, conditions }) => [id, conditions]),
      [
        [to, [isRoom(to)]],
        [`texts only ${to}`, [isText, isRoom(to)]],
        ['elsewhere', [isRoom('!other:example.org')]],
        [from, [isRoom(from)]],
        ['texts only', [isText, isRoom(from)]],
      ],
    );
    assert.deepEqual(
      room.map(({ rule_id: id, actions }) => [id, actions]),
      [
        [to, ['notify']],
        [from, ['notify']],
      ],
    );
    assert.deepEqual(underride[0]?.rule_id, `quiet ${to}`);
  });

  it('adds the new room to the id of a rule that is not named after the old one', () => {
    const rules = put(NO_USER_RULES, 'override', 'texts only', { conditions: [isText, isRoom(from)] });
    const [copy, original] = copyRoomRules(rules, from, to).rules.override;
    assert.deepEqual([copy?.rule_id, copy?.conditions], [`texts only ${to}`, [isText, isRoom(to)]]);
    assert.deepEqual(original, rules.rules.override[0]);
  });

  it('copies rules to a room whose id contains `$&` and other replacement patterns of JavaScript', () => {
    const special = "!$&$'$`$$:example.org";
    const rules = put(NO_USER_RULES, 'override', `quiet ${from}`, { conditions: [isRoom(from)] });
    const [copy] = copyRoomRules(rules, from, special).rules.override;
    assert.deepEqual([copy?.rule_id, copy?.conditions], [`quiet ${special}`, [isRoom(special)]]);
  });

  it('copies no disabled rule and replaces no existing rule', () => {
    const disabled = setRuleEnabled(put(NO_USER_RULES, 'room', from), 'room', from, false);
    assert.equal(copyRoomRules(disabled, from, to), disabled);
    const withBothRooms = put(put(NO_USER_RULES, 'room', from), 'room', to, { actions: ['notify'] });
    assert.equal(copyRoomRules(withBothRooms, from, to), withBothRooms);
  });
});
