import assert from 'node:assert/strict';
import { it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { sectionDefaults } from '../../../test/support/inputs/section-defaults.ts';
import { CacheRegistry, cachesSection } from '../../kernel/caches/index.ts';
import { keyWait, MissingKeys } from './missing-keys.ts';

it('MissingKeys ends the wait for a key after two hours, even if look-ups are 40 minutes apart', () => {
  const clock = manualClock();
  const keys = new MissingKeys(clock, new CacheRegistry(clock, sectionDefaults(cachesSection)));
  const interval = 40 * 60_000;
  let fetches = 0;
  while (keys.recordFailure('gone.example', 'ed25519:1') && fetches < 10) {
    fetches++;
    clock.advance(interval);
  }
  assert.equal(fetches, keyWait / interval);
});
