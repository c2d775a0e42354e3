import assert from 'node:assert/strict';
import { it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import { createMetrics } from '../observability/index.ts';
import { jobMigrations, reportJobs } from './index.ts';
import { insertJob, type JobTables } from './store.ts';

forEachDatabase((open) => {
  it('reportJobs counts waiting and failed jobs by kind, and reports for how long the oldest has been due', async () => {
    const database = await open(jobMigrations);
    const clock = manualClock();
    const metrics = await createMetrics();
    reportJobs(metrics, database, clock);
    const insert = (kind: string, key: string, runAt: number) =>
      database.transaction<JobTables, void>((writer) =>
        insertJob(writer, { kind, key, payload: null, runAt }, clock.now()),
      );
    await insert('rooms/profile', 'a', clock.now() - 42_000);
    await insert('rooms/profile', 'b', clock.now() + 60_000);
    await insert('rooms/departure', 'c', clock.now());
    await database.transaction<JobTables, unknown>((writer) =>
      writer.updateTable('jobs').set({ state: 'failed' }).where('key', '=', 'c').execute(),
    );
    const text = await metrics.render();
    assert.match(text, /^server_jobs\{kind="rooms\/profile",state="waiting"\} 2$/m);
    assert.match(text, /^server_jobs\{kind="rooms\/departure",state="failed"\} 1$/m);
    assert.match(text, /^server_jobs_oldest_due_seconds 42$/m);
    const { scans } = database.statistics;
    await metrics.render();
    assert.equal(database.statistics.scans, scans, 'a scrape soon afterwards does not query the database');
  });
});
