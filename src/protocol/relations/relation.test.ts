import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../json.ts';
import { relationOf } from './relation.ts';

const relatesTo = (value: JsonValue): JsonObject => ({ body: 'x', 'm.relates_to': value });

describe('relationOf', () => {
  it('reads well-formed relations', () => {
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

  it('ignores content without relation, and never throws', () => {
    assert.equal(relationOf({}), undefined);
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        relationOf(relatesTo(value as JsonValue));
      }),
    );
  });
});
