import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { timeIn } from './times.ts';

describe('timeIn', () => {
  it('reads dates and times of day as UTC wherever the command runs, and refuses other texts', () => {
    const { TZ } = process.env;
    process.env['TZ'] = 'America/New_York';
    try {
      const read = (text: string) => new Date(timeIn(text, 'past', 0)).toISOString();
      assert.equal(read('2026-11-23'), '2026-11-23T00:00:00.000Z');
      for (const text of ['2026-11-23T18:00', '2026-11-23T18:00:00.000Z', '2026-11-23T13:00-05:00']) {
        assert.equal(read(text), '2026-11-23T18:00:00.000Z', text);
      }
      for (const text of ['2026-11-23 18:00', '2026-11-23 about noon', '2026-13-01', '2026']) {
        assert.throws(() => read(text), /is not a time/, text);
      }
    } finally {
      if (TZ === undefined) delete process.env['TZ'];
      else process.env['TZ'] = TZ;
    }
  });
});
