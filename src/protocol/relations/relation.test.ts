import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../json.ts';
import { annotationOf, canBeAnnotated, duplicateAnnotation } from './annotations.ts';
import { mentionsOf } from './mentions.ts';
import { relationOf, repliedToBy } from './relation.ts';

const relatesTo = (value: JsonValue): JsonObject => ({ body: 'x', 'm.relates_to': value });

describe('relationOf', () => {
  it('reads a relation', () => {
    assert.deepEqual(relationOf(relatesTo({ rel_type: 'm.annotation', event_id: '$a', key: '👍' })), {
      relType: 'm.annotation',
      eventId: '$a',
      key: '👍',
      isFallingBack: false,
    });
    assert.deepEqual(
      relationOf(relatesTo({ rel_type: 'm.thread', event_id: '$a:b', is_falling_back: true, key: 1 })),
      { relType: 'm.thread', eventId: '$a:b', key: undefined, isFallingBack: true },
    );
  });

  const malformed: JsonValue[] = [
    null,
    'm.thread',
    [],
    {},
    { rel_type: 'm.thread' },
    { event_id: '$a' },
    { rel_type: 1, event_id: '$a' },
    { rel_type: '', event_id: '$a' },
    { rel_type: 'x'.repeat(256), event_id: '$a' },
    { rel_type: 'a\0b', event_id: '$a' },
    { rel_type: 'm.thread', event_id: 'a' },
    { rel_type: 'm.thread', event_id: ['$a'] },
    { 'm.in_reply_to': { event_id: '$a' } },
  ];
  for (const value of malformed) {
    it(`ignores ${JSON.stringify(value).slice(0, 60)}`, () =>
      assert.equal(relationOf(relatesTo(value)), undefined));
  }

  it('ignores content without one, and never throws', () => {
    assert.equal(relationOf({}), undefined);
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const content = relatesTo(value as JsonValue);
        relationOf(content);
        repliedToBy(content);
        mentionsOf({ 'm.mentions': value as JsonValue });
      }),
    );
  });
});

describe('repliedToBy', () => {
  const cases: [value: JsonValue, expected: string | undefined][] = [
    [{ 'm.in_reply_to': { event_id: '$a' } }, '$a'],
    [
      { rel_type: 'm.thread', event_id: '$r', 'm.in_reply_to': { event_id: '$a' }, is_falling_back: true },
      '$a',
    ],
    [{ 'm.in_reply_to': '$a' }, undefined],
    [{ 'm.in_reply_to': { event_id: 'a' } }, undefined],
    [{}, undefined],
  ];
  for (const [value, expected] of cases) {
    it(`${JSON.stringify(value)}: ${expected}`, () => assert.equal(repliedToBy(relatesTo(value)), expected));
  }
});

describe('annotations', () => {
  const annotation = (key: JsonValue) => relatesTo({ rel_type: 'm.annotation', event_id: '$a', key });
  const event = (content: JsonObject) => ({ sender: '@a:b', type: 'm.reaction', content });

  it('are the same by sender, type, target and key', () => {
    assert.deepEqual(annotationOf(event(annotation('👍'))), {
      sender: '@a:b',
      type: 'm.reaction',
      eventId: '$a',
      key: '👍',
    });
  });

  it('need a key', () => {
    assert.equal(annotationOf(event(annotation(1))), undefined);
    assert.equal(
      annotationOf(event(relatesTo({ rel_type: 'm.thread', event_id: '$a', key: 'x' }))),
      undefined,
    );
  });

  it('can not target annotations and replacements', () => {
    assert.equal(canBeAnnotated({}), true);
    assert.equal(canBeAnnotated(relatesTo({ rel_type: 'm.thread', event_id: '$a' })), true);
    assert.equal(canBeAnnotated(relatesTo({ rel_type: 'm.replace', event_id: '$a' })), false);
    assert.equal(canBeAnnotated(annotation('x')), false);
  });

  it('are refused twice with the error of the specification', () => {
    const { status, errcode } = duplicateAnnotation();
    assert.deepEqual([status, errcode], [400, 'M_DUPLICATE_ANNOTATION']);
  });
});

describe('mentionsOf', () => {
  const cases: [value: JsonValue | undefined, userIds: string[] | undefined, room?: boolean][] = [
    [undefined, undefined],
    [{}, []],
    [null, []],
    [['@a:b'], []],
    [{ user_ids: ['@a:b', '@c:d', '@a:b'] }, ['@a:b', '@c:d']],
    [{ user_ids: ['@a:b', 'a', '', null, 1, ['@x:y'], '!a:b'] }, ['@a:b']],
    [{ user_ids: '@a:b' }, []],
    [{ room: true }, [], true],
    [{ room: 'true' }, []],
  ];
  for (const [value, userIds, room = false] of cases) {
    it(`of ${JSON.stringify(value)}`, () => {
      const mentions = mentionsOf(value === undefined ? {} : { 'm.mentions': value });
      assert.deepEqual(mentions, userIds && { userIds, room });
    });
  }
});
