import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import type { Migration } from './index.ts';

const rows: Migration = {
  name: 'test/0001-rows',
  async up({ db }) {
    await db.schema
      .createTable('rows')
      .addColumn('id', 'bigint', (column) => column.primaryKey())
      .addColumn('pair', 'bigint', (column) => column.notNull())
      .execute();
  },
};

const writer = fileURLToPath(new URL('../../../test/support/databases/crash-writer.ts', import.meta.url));

forEachDatabase((open) => {
  test('acknowledged transactions and batches are complete on disk after the process was killed', async () => {
    const database = await open([rows], { flush: 'every-commit' });
    const options = open.optionsOf(database);
    await database.close();

    const acknowledged: number[] = [];
    const child = fork(writer, [JSON.stringify(options)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    child.on('message', (id) => {
      acknowledged.push(Number(id));
      if (acknowledged.length === 500) child.kill('SIGKILL');
    });
    await new Promise((resolve) => child.once('close', resolve));
    assert.ok(acknowledged.length >= 500);

    const reopened = await open.restart(database);
    const reader = reopened.reader<{ rows: { id: number; pair: number } }>();
    const found = await reader.selectFrom('rows').select(['id', 'pair']).execute();
    const ids = new Set(found.map(({ id }) => id));
    assert.deepEqual(
      acknowledged.filter((id) => !ids.has(id)),
      [],
    );
    // Each transaction and each batch wrote a row and its negative.
    assert.deepEqual(
      found.filter(({ id }) => !ids.has(-id)),
      [],
    );
  });
});
