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

  it('returns the innermost member or item of a value that may also be null', () => {
    const orNull = Type.Object({ users: Type.Optional(Type.Union([schema.properties.users, Type.Null()])) });
    const part = violatingPart({ schema: orNull, value: usersWith({ devices: ['a', 7] }), path: [] });
    assert.deepEqual([part.path, part.value], [['users', 'last', 'devices', '1'], 7]);
  });

  it('returns the object that lacks a required member', () => {
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

  it('names the item of a tuple that violates its schema', () => {
    const pairs = Type.Array(Type.Tuple([Type.String(), Type.String()]));
    const body = [...Array.from({ length: 300 }, () => ['a', 'b']), ['a', 1]];
    assert.throws(() => new BodyChecker(pairs).check(body), /'300\.1' must be string/);
  });

  it('names the first violation, like the error about a small body', () => {
    for (const last of [{}, { devices: [1] }, { devices: 'x' }, 'x', null]) {
      const small = errorOf({ users: { last } });
      assert.match(small!, /^The body is not as expected: 'users\.last/);
      assert.equal(errorOf(usersWith(last)), small);
    }
  });
});
