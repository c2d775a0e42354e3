import assert from 'node:assert/strict';
import { it } from 'node:test';
import { sql } from 'kysely';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import { jobMigrations } from './index.ts';
import { type JobTables, nextJobsQuery } from './store.ts';

forEachDatabase((open) => {
  it('nextJobsQuery reads due jobs through the index jobs_due, without reading all jobs that are due later', async () => {
    const database = await open(jobMigrations);
    await database.batch([
      {
        sql: "insert into jobs (kind, key, payload, state, run_at, created_ts, revision, attempts, lease_until) values (?, ?, 'null', 'waiting', ?, 0, 1, 0, 0)",
        rows: Array.from({ length: 3_000 }, (_, index) => [`kind ${index % 3}`, `${index}`, index]),
      },
    ]);
    const reader = database.reader<JobTables>();
    const query = nextJobsQuery(reader, ['kind 0', 'kind 1'], 1_000, 4);
    assert.deepEqual(
      (await query.execute()).map(({ run_at }) => run_at),
      [0, 1, 3, 4],
    );
    await database.transaction<JobTables, unknown>((writer) => sql`analyze`.execute(writer));
    const explain = open.kind === 'sqlite' ? 'explain query plan ' : 'explain ';
    const compiled = query.compile();
    const { rows } = await reader.executeQuery({ ...compiled, sql: explain + compiled.sql });
    assert.match(JSON.stringify(rows), /jobs_due/);
  });
});
