import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { stateMapKey } from '../../../protocol/index.ts';
import { type RequiredEntry, RequiredState } from './required-state.ts';

const me = '@me:test';
const you = '@you:test';

/** A state. In place of an event id, each entry has its event type and state key, so that tests can name it. */
const state = new Map(
  [
    ['m.room.create', ''],
    ['m.room.name', ''],
    ['m.room.member', me],
    ['m.room.member', you],
    ['m.space.child', '!a:test'],
    ['m.space.child', '!b:test'],
  ].map(([type = '', stateKey = '']) => [stateMapKey(type, stateKey), `${type} ${stateKey}`.trim()]),
);

const selected = (required: RequiredState) => required.select(state).map((key) => state.get(key));
const allEntries = [...state.values()];

describe('RequiredState selects state entries', () => {
  const cases: [rules: RequiredEntry[][], expected: string[]][] = [
    [[], []],
    [[[['m.room.name', '']]], ['m.room.name']],
    [[[['m.room.name', 'other']]], []],
    [[[['m.space.child', '*']]], ['m.space.child !a:test', 'm.space.child !b:test']],
    [[[['*', '']]], ['m.room.create', 'm.room.name']],
    [[[['*', '*']]], allEntries],
    [[[['m.room.member', '$ME']]], [`m.room.member ${me}`]],
    [[[['m.room.member', '$LAZY']]], []],
    [
      [
        [
          ['*', '*'],
          ['m.room.member', '$LAZY'],
        ],
      ],
      allEntries.filter((entry) => !entry.startsWith('m.room.member')),
    ],
    [
      [
        [
          ['*', ''],
          ['m.room.member', '$LAZY'],
          ['m.room.member', '*'],
        ],
      ],
      ['m.room.create', 'm.room.name', `m.room.member ${me}`, `m.room.member ${you}`],
    ],
    // One rule requires all members and the other rule does not: the union requires all members.
    [[[['*', '*']], [['m.room.member', '$LAZY']]], allEntries],
  ];
  for (const [rules, expected] of cases) {
    it(`selects ${expected.join(', ') || 'nothing'} for ${JSON.stringify(rules)}`, () => {
      const required = RequiredState.of(rules, me);
      assert.deepEqual(selected(required).sort(), [...expected].sort());
      assert.deepEqual(selected(RequiredState.parse(required.text, me)), selected(required));
    });
  }

  it('has the same stored text (`text`) for the same entries in any order', () => {
    const [name, create]: RequiredEntry[] = [
      ['m.room.name', ''],
      ['m.room.create', ''],
    ];
    assert.equal(
      RequiredState.of([[name!, create!], [name!]], me).text,
      RequiredState.of([[name!], [create!, name!, name!]], me).text,
    );
  });

  it('returns the union of two required states', () => {
    const [names, lazyMembers] = [
      RequiredState.of([[['m.room.name', '']]], me),
      RequiredState.of([[['m.room.member', '$LAZY']]], me),
    ];
    const union = names.union(lazyMembers);
    assert.deepEqual([selected(union), union.lazyMembers, names.lazyMembers], [['m.room.name'], true, false]);
    assert.equal(names.union(names), names);
    assert.equal(union.text, lazyMembers.union(names).text);
  });
});
