import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isThorough } from '../../../test/support/inputs/thoroughness.ts';
import { resolveState } from '../../../test/support/rooms/resolve-state.ts';
import { type ForkedRoom, makeForkedRoom } from './test/forked-rooms.ts';
import { sorted } from './test/memory-source.ts';
import { ReferenceResolution } from './test/reference.ts';

/** The number of rooms to compare; `FORKED_ROOMS=50000` for a long run. */
const rooms = Number(process.env['FORKED_ROOMS'] ?? (isThorough ? 10_000 : 2_000));

function reference(room: ForkedRoom, chains: 'whole' | 'within the full conflicted set') {
  const algorithm = room.version.stateResolution;
  assert(algorithm !== 'v1');
  return new ReferenceResolution(room.source, algorithm, chains).resolve(room.states);
}

test(`resolveState resolves ${rooms} forked rooms as the specification says`, () => {
  let forked = 0;
  for (let seed = 0; seed < rooms; seed++) {
    const room = makeForkedRoom(seed);
    const resolved = resolveState(room.version, room.states, room.source);
    const expected = reference(room, 'within the full conflicted set');
    assert.deepEqual(sorted(resolved), sorted(expected), `room ${seed}, version ${room.version.id}`);
    if (room.states.some((state) => sorted(state).join() !== sorted(room.states[0]!).join())) forked++;
  }
  assert(forked > rooms * 0.8, `only ${forked} rooms had conflicting states`);
});

test('room version 12 resolves to the same state whether the auth chains of power events are followed whole or only within the full conflicted set', () => {
  for (let seed = 0; seed < rooms * 0.3; seed++) {
    const room = makeForkedRoom(seed);
    if (room.version.stateResolution !== 'v2.1') continue;
    const whole = reference(room, 'whole');
    assert.deepEqual(
      sorted(reference(room, 'within the full conflicted set')),
      sorted(whole),
      `room ${seed}`,
    );
  }
});
