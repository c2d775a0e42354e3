import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ALICE, pushEvent } from '../../../test/support/inputs/push-subject.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { compileCondition } from './conditions.ts';
import type { PushRoomFacts, PushSubject } from './push-event.ts';

/** Whether a condition matches; false if it does not compile. */
function holds(
  condition: JsonValue,
  event: Partial<PushSubject> = {},
  room: Partial<PushRoomFacts> = {},
  displayName?: string,
): boolean {
  return compileCondition(condition)?.(pushEvent(event, room), { ...ALICE, displayName }) ?? false;
}

describe('push condition event_match', () => {
  const cases: [key: string, pattern: string, content: JsonObject, expected: boolean][] = [
    ['content.topic', 'lunc?*', { topic: 'Lunch plans' }, true],
    ['content.topic', 'lunc?*', { topic: 'LUNCH' }, true],
    ['content.topic', 'lunc?*', { topic: ' lunch' }, false],
    ['content.topic', 'lunc?*', { topic: 'lunc' }, false],
    ['content.topic', '*', {}, false],
    ['content.topic', '*', { topic: null }, false],
    ['content.topic', '*', { topic: 1 }, false],
    ['content.topic', '*', { topic: ['x'] }, false],
    ['content.topic', '*', { topic: '' }, true],
    ['content.body', 'ex*ple', { body: 'An example event.' }, true],
    ['content.body', 'ex*ple', { body: 'exple' }, true],
    ['content.body', 'ex*ple', { body: 'An exciting triple-whammy' }, true],
    ['content.body', 'example', { body: 'examples' }, false],
    ['content.formatted_body', 'example', { formatted_body: 'An example' }, false],
    ['content.m\\.relates_to.rel_type', 'm.thread', { 'm.relates_to': { rel_type: 'm.thread' } }, true],
    ['content.m.relates_to.rel_type', 'm.thread', { 'm.relates_to': { rel_type: 'm.thread' } }, false],
    ['content.m.relates_to', 'x', { m: { relates_to: 'x' } }, true],
    ['content.a\\\\b', 'x', { 'a\\b': 'x' }, true],
    ['content.a\\b', 'x', { 'a\\b': 'x' }, true],
    ['content.a\\', 'x', { 'a\\': 'x' }, true],
    ['content..a', 'x', { '': { a: 'x' } }, true],
    ['content.toString.name', '*', {}, false],
    ['content.list.0', 'x', { list: ['x'] }, false],
    ['type', 'M.ROOM.*', {}, true],
    ['sender', '@bob:*', {}, true],
    ['room_id', '!room:example.org', {}, true],
    ['event_id', '$event', {}, true],
    ['state_key', '*', {}, false],
    ['redacts', '*', {}, false],
  ];
  for (const [key, pattern, content, expected] of cases) {
    it(`${expected ? 'matches' : 'does not match'} ${key} with ${pattern} in ${JSON.stringify(content)}`, () => {
      assert.equal(holds({ kind: 'event_match', key, pattern }, { content }), expected);
    });
  }

  it('matches an empty state_key, and the event id in redacts', () => {
    assert.equal(holds({ kind: 'event_match', key: 'state_key', pattern: '' }, { stateKey: '' }), true);
    assert.equal(holds({ kind: 'event_match', key: 'redacts', pattern: '$x' }, { redacts: '$x' }), true);
  });
});

describe('push condition event_property_is', () => {
  const cases: [value: JsonValue, property: JsonValue | undefined, expected: boolean][] = [
    [true, true, true],
    [true, 'true', false],
    [true, 1, false],
    [1, 1, true],
    [1, '1', false],
    ['x', 'x', true],
    ['x', 'X', false],
    ['x*', 'xy', false],
    [null, null, true],
    [null, undefined, false],
    [null, false, false],
    [1.5, 1.5, false],
    [2 ** 53, 2 ** 53, false],
    [-(2 ** 53) + 1, -(2 ** 53) + 1, true],
    [['x'], ['x'], false],
    [{}, {}, false],
  ];
  for (const [value, property, expected] of cases) {
    it(`${expected ? 'matches' : 'does not match'} ${JSON.stringify(property)} with ${JSON.stringify(value)}`, () => {
      const condition = { kind: 'event_property_is', key: 'content.m\\.federate', value };
      assert.equal(holds(condition, { content: { 'm.federate': property } }), expected);
    });
  }
});

describe('push condition event_property_contains', () => {
  const cases: [value: JsonValue, property: JsonValue | undefined, expected: boolean][] = [
    ['#myroom:example.com', ['#somewhere:example.org', '#myroom:example.com'], true],
    [':example.com', ['#myroom:example.com'], false],
    ['#MYROOM:example.com', ['#myroom:example.com'], false],
    [null, [null], true],
    [1, ['1', true, 1.5, [1], { a: 1 }], false],
    [1, ['1', 1], true],
    [['x'], [['x']], false],
    ['x', 'x', false],
    ['x', { 0: 'x' }, false],
    ['x', undefined, false],
  ];
  for (const [value, property, expected] of cases) {
    it(`${expected ? 'finds' : 'does not find'} ${JSON.stringify(value)} in ${JSON.stringify(property)}`, () => {
      const condition = { kind: 'event_property_contains', key: 'content.alt_aliases', value };
      assert.equal(holds(condition, { content: { alt_aliases: property } }), expected);
    });
  }
});

describe('push condition contains_display_name', () => {
  const cases: [displayName: string | undefined, body: JsonValue, expected: boolean][] = [
    ['Alice', 'hello alice!', true],
    ['Alice', 'malice', false],
    ['Al*', 'hello alice', false],
    ['Al*', 'hello al*', true],
    ['[A] lice?', 'for [a] LICE?', true],
    ['', 'hello', false],
    [undefined, 'hello undefined', false],
    ['1', 1, false],
  ];
  for (const [displayName, body, expected] of cases) {
    it(`${expected ? 'finds' : 'does not find'} the display name ${displayName} in ${JSON.stringify(body)}`, () => {
      assert.equal(
        holds({ kind: 'contains_display_name' }, { content: { body } }, {}, displayName),
        expected,
      );
    });
  }
});

describe('push condition room_member_count', () => {
  const cases: [is: JsonValue, count: number, expected: boolean][] = [
    ['2', 2, true],
    ['2', 3, false],
    ['==2', 2, true],
    ['<10', 9, true],
    ['<10', 10, false],
    ['>10', 10, false],
    ['>10', 11, true],
    ['<=10', 10, true],
    ['<=10', 11, false],
    ['>=10', 10, true],
    ['>=10', 9, false],
    ['02', 2, true],
    [2, 2, false],
    ['', 0, false],
    ['=2', 2, false],
    ['2.0', 2, false],
    ['-2', 2, false],
    ['== 2', 2, false],
    ['two', 2, false],
  ];
  for (const [is, count, expected] of cases) {
    it(`${expected ? 'matches' : 'does not match'} ${count} members with ${JSON.stringify(is)}`, () => {
      assert.equal(holds({ kind: 'room_member_count', is }, {}, { memberCount: count }), expected);
    });
  }
});

describe('push condition sender_notification_permission', () => {
  const mayNotifyRoom = { senderMayNotify: (key: string) => key === 'room' };
  const cases: [key: JsonValue, expected: boolean][] = [
    ['room', true],
    ['other', false],
    [null, false],
  ];
  for (const [key, expected] of cases) {
    it(`returns ${expected} for the key ${JSON.stringify(key)} if the sender may notify the room`, () => {
      assert.equal(holds({ kind: 'sender_notification_permission', key }, {}, mayNotifyRoom), expected);
    });
  }
});

describe('push condition io.element.msc4306.thread_subscription', () => {
  const followed = new Set(['$root']);
  const cases: [subscribed: JsonValue, threadRoot: string | undefined, expected: boolean][] = [
    [true, '$root', true],
    [true, '$other', false],
    [true, undefined, false],
    [false, '$root', false],
    [false, '$other', true],
    [false, undefined, false],
    ['true', '$root', false],
    [null, '$other', false],
  ];
  for (const [subscribed, threadRoot, expected] of cases) {
    it(`returns ${expected} for subscribed ${JSON.stringify(subscribed)} in the thread ${threadRoot}`, () => {
      const test = compileCondition({ kind: 'io.element.msc4306.thread_subscription', subscribed });
      const member = { ...ALICE, followedThreads: followed };
      assert.equal(test?.(pushEvent({}, { threadRoot }), member) ?? false, expected);
    });
  }
});

describe('compileCondition', () => {
  const conditions: JsonValue[] = [
    null,
    'event_match',
    [],
    {},
    { kind: 'constructor' },
    { kind: 'org.example.unknown', key: 'type', pattern: '*' },
    // No room version has extensible events, the only feature that MSC3931 knows.
    {
      kind: 'org.matrix.msc3931.room_version_supports',
      feature: 'org.matrix.msc3932.extensible_events',
    },
    { kind: 'event_match', key: 'type' },
    { kind: 'event_match', pattern: '*' },
    { kind: 'event_match', key: ['type'], pattern: '*' },
    { kind: 'event_match', key: 'type', pattern: 1 },
    { kind: 'event_property_is', key: 'content.absent' },
    { kind: 'event_property_contains', key: 'content.absent' },
    { kind: 'room_member_count' },
    { kind: 'sender_notification_permission' },
  ];
  for (const condition of conditions) {
    it(`returns undefined for ${JSON.stringify(condition)}`, () =>
      assert.equal(compileCondition(condition), undefined));
  }
});
