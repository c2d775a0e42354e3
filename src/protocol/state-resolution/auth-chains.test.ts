import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { testEvent, version } from '../authorization/test/test-events.ts';
import { authChainDifference, conflictedSubgraph } from './auth-chains.ts';
import { MemorySource } from './test/memory-source.ts';

/** Events named by letters, each with the letters of its auth events. */
function graph(edges: Readonly<Record<string, string>>): MemorySource {
  const events = Object.entries(edges).map(([eventId, cites]) =>
    testEvent(version(11), { type: 't', sender: '@a:a', eventId, authEventIds: [...cites] }),
  );
  return new MemorySource(events);
}

const sets = (...letters: string[]) => letters.map((set) => new Set(set));
const letters = (ids: Iterable<string>) => [...ids].sort().join('');

describe('authChainDifference', () => {
  // a and b reach c on different paths.
  const source = graph({ a: 'de', b: 'e', c: '', d: 'c', e: 'c' });

  test('returns the events that are in some auth chains but not in all', () => {
    assert.equal(letters(authChainDifference(sets('a', 'b'), source)), 'd');
    assert.equal(letters(authChainDifference(sets('a', 'c'), source)), 'cde');
    assert.equal(letters(authChainDifference(sets('a', 'b', 'd'), source)), 'de');
  });

  test('returns no events for one set and for sets with the same auth chains', () => {
    assert.equal(letters(authChainDifference(sets('ab'), source)), '');
    assert.equal(letters(authChainDifference(sets('d', 'e'), source)), '');
    assert.equal(letters(authChainDifference(sets('ab', 'ad'), source)), '');
  });

  test('does not count an event as part of its own auth chain', () => {
    assert.equal(letters(authChainDifference(sets('d', 'de', 'dea'), source)), 'de');
    assert.equal(letters(authChainDifference(sets('e', 'ea'), source)), 'de');
  });

  test('includes auth events that the source does not know', () => {
    assert.equal(letters(authChainDifference(sets('a', 'b'), graph({ a: 'x', b: '' }))), 'x');
  });

  test('terminates on cyclic auth events', () => {
    assert.equal(letters(authChainDifference(sets('a', 'c'), graph({ a: 'b', b: 'a', c: '' }))), 'ab');
  });
});

describe('conflictedSubgraph', () => {
  const source = graph({ a: 'bc', b: 'd', c: 'e', d: 'e', e: 'f', f: '' });

  test('returns all events on paths between two of the given events', () => {
    assert.equal(letters(conflictedSubgraph(new Set('ad'), source)), 'abd');
    assert.equal(letters(conflictedSubgraph(new Set('ae'), source)), 'abcde');
    assert.equal(letters(conflictedSubgraph(new Set('bc'), source)), 'bc');
  });

  test('terminates on cyclic auth events', () => {
    assert.equal(letters(conflictedSubgraph(new Set('a'), graph({ a: 'b', b: 'c', c: 'a' }))), 'abc');
  });
});
