import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stateMapKey } from '../../protocol/index.ts';
import { keysWithEmptyStateKey, PrejoinStateKeys } from './prejoin-state-keys.ts';

const stateOf = (...entries: [type: string, stateKey: string][]) =>
  new Map(entries.map(([type, stateKey]) => [stateMapKey(type, stateKey), 1]));

test('PrejoinStateKeys.select returns the requested single entries that the state contains, in the order of the request', () => {
  const keys = new PrejoinStateKeys([
    ...keysWithEmptyStateKey(['b', 'a', 'missing']),
    stateMapKey('c', 'one'),
  ]);
  const state = stateOf(['a', ''], ['a', 'other'], ['b', ''], ['c', 'one'], ['c', 'two']);
  assert.equal(keys.hasOnlySingleEntries, true);
  assert.deepEqual(keys.select(state), [stateMapKey('b', ''), stateMapKey('a', ''), stateMapKey('c', 'one')]);
});

test('PrejoinStateKeys.select returns all entries of a type, each once, and no entry of another type with the same prefix', () => {
  const keys = new PrejoinStateKeys(keysWithEmptyStateKey(['a']), ['a']);
  const state = stateOf(['ab', ''], ['a', 'b'], ['a', ''], ['1:a', '']);
  assert.deepEqual(keys.select(state), [stateMapKey('a', ''), stateMapKey('a', 'b')]);
});

test('PrejoinStateKeys.select returns all single entries, and at most 80 entries that are selected by type', () => {
  const keys = new PrejoinStateKeys(keysWithEmptyStateKey(['m.room.name']), ['m.room.member']);
  const members = Array.from({ length: 1_000 }, (_, index): [string, string] => [
    'm.room.member',
    `@user${index}:test`,
  ]);
  const chosen = keys.select(stateOf(...members, ['m.room.name', '']));
  assert.deepEqual([chosen.length, chosen[0]], [81, stateMapKey('m.room.name', '')]);
});
