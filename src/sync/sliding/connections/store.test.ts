import assert from 'node:assert/strict';
import { it } from 'node:test';
import { forEachDatabase } from '../../../../test/support/databases/databases.ts';
import { slidingSyncMigrations } from './migrations.ts';
import { replaceConnection } from './store.ts';
import type { SlidingSyncTables } from './tables.ts';

const anna = '@anna:test';

forEachDatabase((open) => {
  it('replaceConnection keeps the most recently used connections of a device, and of all devices of a user', async () => {
    const database = await open(slidingSyncMigrations);
    const reader = database.reader<SlidingSyncTables>();
    const bounds = { maxOtherOfDevice: 2, maxOtherOfUser: 4 };
    const add = (id: number, userId: string, deviceId: string, name: string) =>
      database.transaction<SlidingSyncTables, unknown>((writer) =>
        replaceConnection(writer, id, { userId, deviceId, name }, { ...bounds, now: id }),
      );
    await add(1, '@ben:test', 'A', '1');
    for (const [id, device] of [...'AABBCC'].entries()) await add(id + 2, anna, device, `${id}`);
    const ids = async () =>
      (await reader.selectFrom('sliding_sync_connections').select('id').orderBy('id').execute()).map(
        ({ id }) => id,
      );
    assert.deepEqual(await ids(), [1, 3, 4, 5, 6, 7]);
    assert.deepEqual(await add(8, anna, 'C', 'new'), [{ userId: anna, deviceId: 'A', name: '1' }]);
    assert.deepEqual(await add(9, anna, 'C', 'newest'), [{ userId: anna, deviceId: 'C', name: '4' }]);
    assert.deepEqual(await add(10, anna, 'C', 'newest'), []);
    assert.deepEqual(await ids(), [1, 4, 5, 7, 8, 10]);
  });
});
