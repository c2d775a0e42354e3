import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMetrics, silentLogger } from '../observability/index.ts';
import { openDatabase } from './index.ts';

test('an open database exposes its numbers of statements, batches and flushes as metrics', async () => {
  const metrics = await createMetrics();
  const database = await openDatabase({ kind: 'sqlite', path: ':memory:' }, { log: silentLogger, metrics });
  try {
    await database.batch([
      { sql: 'create table t (a bigint)', rows: [[]] },
      { sql: 'insert into t values (?)', rows: [[1], [2]] },
    ]);
    const text = await metrics.render();
    assert.match(text, /^server_database_statements_total\{purpose="write"\} 3$/m);
    assert.match(text, /^server_database_transactions_total\{kind="batch"\} 1$/m);
    assert.match(text, /^server_database_flushes_total 1$/m);
  } finally {
    await database.close();
  }
});
