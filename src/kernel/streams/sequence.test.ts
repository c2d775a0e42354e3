import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import { Sequence, streamMigrations } from './index.ts';

forEachDatabase((open) => {
  test('Sequence assigns every id only once, in ranges of thousands and as single ids, also after it is opened again', async () => {
    const database = await open(streamMigrations);
    const sequence = await Sequence.open(database, 'things');
    const ids = [25_000, 60_000, 15_000].flatMap((count) => {
      const single = sequence.next();
      const first = sequence.take(count);
      return [single, ...Array.from({ length: count }, (_, index) => first + index)];
    });
    assert.equal(new Set(ids).size, 100_003);
    await database.transaction(async () => undefined);
    const reopened = await Sequence.open(database, 'things');
    assert.ok(reopened.next() > ids.at(-1)!);
  });
});
