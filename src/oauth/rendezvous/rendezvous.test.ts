import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { systemRandomness } from '../../kernel/randomness.ts';
import { Rendezvous } from './rendezvous.ts';

describe('Rendezvous', () => {
  it('deletes the oldest session when there is one session more than the maximum', () => {
    const sessions = new Rendezvous({ clock: manualClock(), randomness: systemRandomness }, 1_000, 2);
    const ids = ['a', 'b', 'c'].map((data) => sessions.create(data, '192.0.2.1').id);
    assert.deepEqual(
      ids.map((id) => sessions.read(id)?.data),
      [undefined, 'b', 'c'],
    );
  });

  it('deletes the oldest session of the IPv6 network with the most sessions, and keeps an older session of another address', () => {
    const sessions = new Rendezvous({ clock: manualClock(), randomness: systemRandomness }, 1_000, 3);
    const older = sessions.create('older', '192.0.2.1').id;
    const ids = ['2001:db8::1', '2001:db8::2', '2001:db8::3'].map((ip) => sessions.create(ip, ip).id);
    assert.equal(sessions.read(older)?.data, 'older');
    assert.deepEqual(
      ids.map((id) => sessions.read(id)?.data),
      [undefined, '2001:db8::2', '2001:db8::3'],
    );
  });
});
