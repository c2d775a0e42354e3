import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Type } from 'typebox';
import { BodyChecker } from './validation.ts';

const schema = Type.Object({
  name: Type.String(),
  since: Type.Optional(Type.String()),
  status: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  any: Type.Optional(Type.Unknown()),
  filter: Type.Optional(Type.Object({ term: Type.Optional(Type.String()) })),
  list: Type.Optional(Type.Array(Type.Object({ kind: Type.Optional(Type.String()) }))),
});

describe('BodyChecker with nullIsAbsent', () => {
  const checker = new BodyChecker(schema, { nullIsAbsent: true });

  it('leaves out optional members that are null where the schema does not accept null, in nested objects and lists as well', () => {
    const body = {
      name: 'a',
      since: null,
      status: null,
      any: null,
      filter: { term: null },
      list: [{ kind: null }, { kind: 'k' }],
      unknown: null,
    };
    const { since: _since, ...others } = body;
    assert.deepEqual(checker.check(body), { ...others, filter: {}, list: [{}, { kind: 'k' }] });
    assert.deepEqual(checker.check({ name: 'a', filter: null }), { name: 'a' });
  });

  it('rejects null for required members, for elements of lists and for the whole body, and for optional members when nullIsAbsent is not set', () => {
    assert.throws(() => checker.check({ name: null }), { errcode: 'M_BAD_JSON' });
    assert.throws(() => checker.check({ name: 'a', list: [null] }), { errcode: 'M_BAD_JSON' });
    assert.throws(() => checker.check(null), { errcode: 'M_BAD_JSON' });
    assert.throws(() => new BodyChecker(schema).check({ name: 'a', since: null }), { errcode: 'M_BAD_JSON' });
  });
});
