import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { TransferWatch } from './transfer-watch.ts';

describe('TransferWatch', () => {
  it('aborts a transfer as soon as fewer than 8 KiB arrive in an interval of 30 seconds', () => {
    const clock = manualClock();
    let aborts = 0;
    const watch = new TransferWatch(clock, () => aborts++);
    for (const [bytes, expected] of [
      [8 * 1024, 0],
      [9_000, 0],
      [100, 1],
    ] as const) {
      watch.count(bytes);
      clock.advance(29_999);
      clock.advance(1);
      assert.equal(aborts, expected, `after ${bytes} bytes`);
    }
  });

  it('aborts no transfer after its end', () => {
    const clock = manualClock();
    let aborts = 0;
    new TransferWatch(clock, () => aborts++).stop();
    clock.advance(60_000);
    assert.equal(aborts, 0);
  });
});
