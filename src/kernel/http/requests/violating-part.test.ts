import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Type } from 'typebox';
import { BodyChecker } from './validation.ts';
import { violatingPart } from './violating-part.ts';

const schema = Type.Object({
  users: Type.Record(Type.String(), Type.Object({ devices: Type.Array(Type.String()) })),
});

const usersWith = (last: unknown) => ({
  users: {
    ...Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`@u${index}`, { devices: [] }])),
    last,
  },
});

describe('violatingPart', () => {
  it('returns the innermost member or item that violates its schema', () => {
    const part = violatingPart({ schema, value: usersWith({ devices: ['a', 7] }), path: [] });
    assert.deepEqual([part.path, part.value], [['users', 'last', 'devices', '1'], 7]);
  });

  it('returns an object that lacks a required member, with a schema that accepts all its other members', () => {
    const part = violatingPart({ schema, value: usersWith({}), path: [] });
    assert.deepEqual([part.path, part.value], [['users', 'last'], {}]);
  });
});

describe('the error about a body with many entries', () => {
  const errorOf = (body: unknown) => {
    try {
      new BodyChecker(schema).check(body);
    } catch (error) {
      return (error as Error).message;
    }
    return undefined;
  };

  it('names the first violation, like the error about a small body', () => {
    for (const last of [{}, { devices: [1] }, { devices: 'x' }, 'x', null]) {
      const small = errorOf({ users: { last } });
      assert.match(small!, /^The body is not as expected: 'users\.last/);
      assert.equal(errorOf(usersWith(last)), small);
    }
  });
});
