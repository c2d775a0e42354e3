import assert from 'node:assert/strict';
import { it } from 'node:test';
import { forSelectedDatabases } from '../../../../test/support/databases/databases.ts';
import { alice, RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';
import { migrate } from '../../../kernel/database/index.ts';
import { Jobs, jobMigrations } from '../../../kernel/jobs/index.ts';
import { silentLogger } from '../../../kernel/observability/index.ts';
import { sendLeaveJobsMigration } from './migration.ts';
import { sendLeaveJob } from './pending-leaves.ts';

forSelectedDatabases(import.meta.url, (open) => {
  it('sendLeaveJobsMigration renames the jobs that an older version has scheduled as rooms/tell-leave, so that they run', async () => {
    const fixture = await RoomsUnderTest.open(open, jobMigrations);
    const { database, clock } = fixture;
    const jobs = new Jobs({ ...fixture, log: silentLogger, isOnlyProcess: true });
    const key = JSON.stringify([alice, '!room:far.test']);
    const older = { kind: 'rooms/tell-leave', key, payload: { userId: alice }, runAt: clock.now() };
    await database.transaction((writer) => jobs.schedule(writer, older));
    await migrate(database, [...RoomsUnderTest.migrations, ...jobMigrations, sendLeaveJobsMigration]);
    const payloads: unknown[] = [];
    jobs.register(sendLeaveJob, { run: async ({ payload }) => void payloads.push(payload) });
    await jobs.start();
    await jobs.settled();
    await jobs.stop();
    assert.deepEqual(payloads, [{ userId: alice }]);
    assert.deepEqual(await jobs.list({ kind: 'rooms/tell-leave' }), []);
  });
});
