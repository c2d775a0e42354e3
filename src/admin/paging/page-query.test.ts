import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import { PageCursors, type PageStart } from './page-cursors.ts';
import { pageFrom } from './page-query.ts';

const listed = { administrator: '@admin:test', list: 'numbers' };

test('pageFrom skips a page whose rows were all deleted after their keys were read', async () => {
  const cursors = new PageCursors(plainCaches(manualClock()));
  const starts: PageStart[] = [];
  const read = async (start: PageStart, limit: number) => {
    starts.push(start);
    const first = 'after' in start ? Number(start.after.key) + 1 : start.offset;
    const keys = Array.from({ length: limit }, (_, index) => first + index);
    const last = keys.at(-1)!;
    return { rows: keys.filter((key) => key >= 4), next: { value: last, key: last } };
  };
  assert.deepEqual(await pageFrom(cursors, listed, { from: 0, limit: 2 }, read), { rows: [4, 5], next: 2 });
  assert.deepEqual(await pageFrom(cursors, listed, { from: 2, limit: 2 }, read), { rows: [6, 7], next: 4 });
  assert.deepEqual(starts, [
    { offset: 0 },
    { after: { value: 1, key: 1 } },
    { after: { value: 3, key: 3 } },
    { after: { value: 5, key: 5 } },
  ]);
});
