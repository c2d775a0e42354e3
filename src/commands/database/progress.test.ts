import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { ProgressLine } from './progress.ts';

describe('ProgressLine', () => {
  const progressLine = (isTTY: boolean) => {
    const clock = manualClock();
    const written: string[] = [];
    const line = new ProgressLine(clock, { isTTY, write: (text) => written.push(text) });
    return { clock, written, line };
  };

  it('writes the percentage, the table and an estimate of the remaining time every 30 seconds where the output is not a terminal', () => {
    const { clock, written, line } = progressLine(false);
    line.show('events', 0, 1_000);
    clock.advance(20_000);
    line.show('events', 200, 1_000);
    assert.deepEqual(written, []);
    clock.advance(10_000);
    line.show('events', 250, 1_000);
    clock.advance(30_000);
    line.show('event_edges', 600, 1_000);
    line.end();
    assert.deepEqual(written, ['25 %, events, about 2 min left\n', '60 %, event_edges, about 40 s left\n']);
  });

  it('redraws one line on a terminal, and removes it at the end', () => {
    const { clock, written, line } = progressLine(true);
    line.show('events', 0, 1_000);
    clock.advance(1_000);
    line.show('events', 100, 1_000);
    clock.advance(100);
    line.show('events', 110, 1_000);
    clock.advance(900);
    line.show('events', 200, 1_000);
    line.end();
    assert.deepEqual(written, [
      '\r10 %, events\u001b[K',
      '\r20 %, events, about 8 s left\u001b[K',
      '\r\u001b[K',
    ]);
  });
});
