import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { runs } from '../../../test/support/inputs/thoroughness.ts';
import { resolveState } from '../../../test/support/rooms/resolve-state.ts';
import { testEvent, version } from '../authorization/test/test-events.ts';
import { stateMapKey } from '../event.ts';
import { authChainDifference, conflictedSubgraph } from './auth-chains.ts';
import type { StateResolutionSource } from './source.ts';
import { makeForkedRoom } from './test/forked-rooms.ts';
import { MemorySource, sorted, stateOf } from './test/memory-source.ts';
import { Random } from './test/random.ts';

const seeds = fc.integer({ min: 0, max: 2 ** 31 });
const versions = ['1', '2', '11', '12'].map(version);

/** Runs a check with each of the room versions. */
function forEachVersion(check: (roomVersion: ReturnType<typeof version>) => void): void {
  for (const roomVersion of versions) check(roomVersion);
}

describe('resolveState of random forked rooms', () => {
  test('does not depend on the order of the states or of their entries', () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const { source, states } = makeForkedRoom(seed);
        const random = new Random(seed);
        const shuffled = random.shuffle(states).map((state) => new Map(random.shuffle([...state])));
        const reordered = new MemorySource(random.shuffle([...source.events.values()]));
        for (const id of source.rejected) reordered.rejected.add(id);
        forEachVersion((roomVersion) => {
          const resolved = resolveState(roomVersion, states, source);
          assert.deepEqual(sorted(resolveState(roomVersion, shuffled, reordered)), sorted(resolved));
        });
      }),
      { numRuns: runs(500) },
    );
  });

  test('ignores a duplicate state', () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const { source, states } = makeForkedRoom(seed);
        forEachVersion((roomVersion) => {
          const resolved = resolveState(roomVersion, states, source);
          const twice = resolveState(roomVersion, [...states, states[0]!], source);
          assert.deepEqual(sorted(twice), sorted(resolved));
        });
      }),
      { numRuns: runs(300) },
    );
  });

  test('resolves equal states to themselves', () => {
    fc.assert(
      fc.property(seeds, fc.integer({ min: 1, max: 4 }), (seed, count) => {
        const { source, states } = makeForkedRoom(seed);
        const copies = Array.from({ length: count }, () => new Map(states[0]));
        forEachVersion((roomVersion) => {
          assert.deepEqual(sorted(resolveState(roomVersion, copies, source)), sorted(states[0]!));
        });
      }),
      { numRuns: runs(300) },
    );
  });

  test('keeps entries that are the same in all states', () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const { source, states } = makeForkedRoom(seed);
        forEachVersion((roomVersion) => {
          const resolved = resolveState(roomVersion, states, source);
          for (const [key, id] of states[0]!) {
            if (states.every((state) => state.get(key) === id)) assert.equal(resolved.get(key), id);
          }
        });
      }),
      { numRuns: runs(300) },
    );
  });
});

test('resolveState resolves no states to an empty state', () => {
  for (const roomVersion of versions) {
    assert.equal(resolveState(roomVersion, [], new MemorySource()).size, 0);
  }
});

test('resolveState uses the auth chain index of a source that has one', () => {
  for (let seed = 0; seed < 300; seed++) {
    const room = makeForkedRoom(seed);
    const calls: string[] = [];
    const indexed: StateResolutionSource = {
      event: (id) => room.source.event(id),
      isRejected: (id) => room.source.isRejected(id),
      authChainDifference(sets) {
        calls.push('difference');
        return authChainDifference(sets, room.source);
      },
      conflictedSubgraph(conflicted) {
        calls.push('subgraph');
        return conflictedSubgraph(conflicted, room.source);
      },
    };
    const resolved = resolveState(room.version, room.states, room.source);
    assert.deepEqual(sorted(resolveState(room.version, room.states, indexed)), sorted(resolved));
    const isForked = room.states.some((state) => sorted(state).join() !== sorted(room.states[0]!).join());
    const expected = room.version.id === '12' ? ['difference', 'subgraph'] : ['difference'];
    assert.deepEqual(calls, isForked ? expected : []);
  }
});

test('resolveState ignores events that the source does not know', () => {
  for (const roomVersion of versions) {
    const topic = stateMapKey('m.room.topic', '');
    const states = [new Map([[topic, '$unknown']]), new Map([[topic, '$other']])];
    assert.equal(resolveState(roomVersion, states, new MemorySource()).size, 0);
  }
});

test('resolveState terminates on cyclic auth events, which chosen event ids make possible', () => {
  const roomVersion = version(2);
  const event = (eventId: string, type: string, authEventIds: string[]) =>
    testEvent(roomVersion, { type, stateKey: '', sender: '@a:a.example', eventId, authEventIds });
  const source = new MemorySource([
    event('$1:a.example', 'm.room.power_levels', ['$2:a.example']),
    event('$2:a.example', 'm.room.power_levels', ['$1:a.example']),
    event('$3:a.example', 'm.room.topic', ['$1:a.example', '$3:a.example']),
  ]);
  const firstState = stateOf([source.event('$1:a.example')!]);
  const secondState = stateOf([source.event('$2:a.example')!, source.event('$3:a.example')!]);
  for (const resolvedVersion of versions)
    assert(resolveState(resolvedVersion, [firstState, secondState], source).size <= 2);
});

test('resolveState handles auth chains of 30,000 events, which are longer than the call stack', () => {
  const roomVersion = version(12);
  const source = new MemorySource();
  const depth = 30_000;
  const id = (index: number) => `$${index}`;
  for (let index = 0; index < depth; index++) {
    const authEventIds = index === 0 ? [] : [id(index - 1)];
    source.add(
      testEvent(roomVersion, {
        type: 'm.room.power_levels',
        stateKey: '',
        sender: '@a:a.example',
        eventId: id(index),
        authEventIds,
        originServerTs: index,
      }),
    );
  }
  const states = [0, depth - 1].map((index) => stateOf([source.event(id(index))!]));
  assert.equal(authChainDifference([new Set([id(0)]), new Set([id(depth - 1)])], source).size, depth - 1);
  assert.equal(conflictedSubgraph(new Set([id(0), id(depth - 1)]), source).size, depth);
  assert.equal(resolveState(roomVersion, states, source).size, 0);
});
