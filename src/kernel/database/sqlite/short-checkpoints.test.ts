import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DatabaseOverloaded } from '../errors.ts';
import { ShortCheckpoints } from './short-checkpoints.ts';

describe('ShortCheckpoints', () => {
  it('runs work although the setting cannot be written, and shortens the checkpoints during the next work', async () => {
    const written: string[] = [];
    let isOverloaded = true;
    const checkpoints = new ShortCheckpoints({
      batch: async ([entry]) => {
        if (isOverloaded) throw new DatabaseOverloaded('the queue is full');
        written.push(entry!.sql);
      },
    });
    assert.equal(await checkpoints.during(async () => 'done'), 'done');
    isOverloaded = false;
    const during = await checkpoints.during(async () => [...written]);
    assert.deepEqual(during, ['pragma wal_autocheckpoint = 500']);
    assert.equal(written.length, 2);
  });
});
