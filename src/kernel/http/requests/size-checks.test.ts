import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Type } from 'typebox';
import { sizeCheck } from './size-checks.ts';

const schema = Type.Object({
  keys: Type.Record(Type.String(), Type.Array(Type.String({ maxLength: 3 }), { maxItems: 2 }), {
    maxProperties: 2,
  }),
  ids: Type.Optional(
    Type.Union([Type.Array(Type.String(), { maxItems: 1 }), Type.Array(Type.Integer(), { maxItems: 2 })]),
  ),
  rooms: Type.Optional(
    Type.Union([Type.Record(Type.String(), Type.Object({}), { maxProperties: 1 }), Type.Null()]),
  ),
  any: Type.Optional(Type.Union([Type.Array(Type.String(), { maxItems: 1 }), Type.Unknown()])),
});

describe('sizeCheck', () => {
  const find = sizeCheck(schema)!;

  it('finds maps, lists and strings that are too large, with their paths', () => {
    assert.deepEqual(find({ keys: { a: [], b: [], c: [] } }), {
      path: ['keys'],
      text: 'must not have more than 2 members',
    });
    assert.deepEqual(find({ keys: { a: [], b: ['', '', ''] } }), {
      path: ['keys', 'b'],
      text: 'must not have more than 2 items',
    });
    assert.deepEqual(find({ keys: { a: ['', 'x'.repeat(7)] } }), {
      path: ['keys', 'a', '1'],
      text: 'must not have more than 3 characters',
    });
  });

  it('finds nothing in values within the bounds, in values of other types, and in strings of the maximum length whose characters take two code units', () => {
    for (const value of [
      { keys: { a: ['😀😀😀', ''], b: [] } },
      { keys: [[]] },
      { keys: null },
      {},
      [],
      null,
      'text',
    ])
      assert.equal(find(value), undefined, JSON.stringify(value));
  });

  it('reports a value of a union as too large only when it is too large for each schema of the union', () => {
    assert.equal(find({ keys: {}, ids: [1, 2] }), undefined);
    assert.equal(find({ keys: {}, any: ['', ''] }), undefined);
    assert.deepEqual(find({ keys: {}, ids: [1, 2, 3] })?.path, ['ids']);
  });

  it('finds a map that is too large where its schema also accepts null', () => {
    assert.deepEqual(find({ keys: {}, rooms: { a: {}, b: {} } })?.path, ['rooms']);
    for (const rooms of [null, {}, { a: {} }, 1]) assert.equal(find({ keys: {}, rooms }), undefined);
  });

  it('does not read the entries of a list or map that has too many entries', () => {
    const unread = {
      get: () => assert.fail('an entry was read'),
      ownKeys: () => ['a', 'b', 'c'],
      getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }),
    };
    assert.deepEqual(find({ keys: new Proxy({}, unread) })?.path, ['keys']);
  });

  it('is undefined for a schema without bounds', () => {
    assert.equal(sizeCheck(Type.Object({ a: Type.Array(Type.String()) })), undefined);
  });
});
