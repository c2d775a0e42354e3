import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { systemRandomness } from '../../kernel/randomness.ts';
import { Rendezvous } from './rendezvous.ts';

describe('Rendezvous', () => {
  it('deletes the oldest session for one above the maximum number', () => {
    const sessions = new Rendezvous({ clock: manualClock(), randomness: systemRandomness }, 1_000, 2);
    const ids = ['a', 'b', 'c'].map((data) => sessions.create(data).id);
    assert.deepEqual(
      ids.map((id) => sessions.read(id)?.data),
      [undefined, 'b', 'c'],
    );
  });
});
