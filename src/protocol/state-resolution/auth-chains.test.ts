import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { testEvent, version } from '../authorization/test/test-events.ts';
import { authChainDifference, conflictedSubgraph } from './auth-chains.ts';
import { MemorySource } from './test/memory-source.ts';

/** Events named by letters, each with the letters that it cites. */
function graph(edges: Readonly<Record<string, string>>): MemorySource {
  const events = Object.entries(edges).map(([eventId, cites]) =>
    testEvent(version(11), { type: 't', sender: '@a:a', eventId, authEventIds: [...cites] }),
  );
  return new MemorySource(events);
}

const sets = (...letters: string[]) => letters.map((set) => new Set(set));
const letters = (ids: Iterable<string>) => [...ids].sort().join('');

describe('the auth difference', () => {
  // a and b lead to c by ways of their own.
  const source = graph({ a: 'de', b: 'e', c: '', d: 'c', e: 'c' });

  test('is what some chains have and others do not', () => {
    assert.equal(letters(authChainDifference(sets('a', 'b'), source)), 'd');
    assert.equal(letters(authChainDifference(sets('a', 'c'), source)), 'cde');
    assert.equal(letters(authChainDifference(sets('a', 'b', 'd'), source)), 'de');
  });

  test('is empty for one set, and for sets with the same chains', () => {
    assert.equal(letters(authChainDifference(sets('ab'), source)), '');
    assert.equal(letters(authChainDifference(sets('d', 'e'), source)), '');
    assert.equal(letters(authChainDifference(sets('ab', 'ad'), source)), '');
  });

  test('does not take an event for a part of its own chain', () => {
    assert.equal(letters(authChainDifference(sets('d', 'de', 'dea'), source)), 'de');
    assert.equal(letters(authChainDifference(sets('e', 'ea'), source)), 'de');
  });

  test('has events that are cited but not known', () => {
    assert.equal(letters(authChainDifference(sets('a', 'b'), graph({ a: 'x', b: '' }))), 'x');
  });

  test('ends where events cite each other', () => {
    assert.equal(letters(authChainDifference(sets('a', 'c'), graph({ a: 'b', b: 'a', c: '' }))), 'ab');
  });
});

describe('the conflicted state subgraph', () => {
  const source = graph({ a: 'bc', b: 'd', c: 'e', d: 'e', e: 'f', f: '' });

  test('is what lies between two of the events', () => {
    assert.equal(letters(conflictedSubgraph(new Set('ad'), source)), 'abd');
    assert.equal(letters(conflictedSubgraph(new Set('ae'), source)), 'abcde');
    assert.equal(letters(conflictedSubgraph(new Set('bc'), source)), 'bc');
  });

  test('ends where events cite each other', () => {
    assert.equal(letters(conflictedSubgraph(new Set('a'), graph({ a: 'b', b: 'c', c: 'a' }))), 'abc');
  });
});
