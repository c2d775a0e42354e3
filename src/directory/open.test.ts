import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { sectionDefaults } from '../../test/support/inputs/section-defaults.ts';
import { RoomsUnderTest } from '../../test/support/rooms/rooms.ts';
import { Jobs } from '../kernel/jobs/index.ts';
import { silentLogger } from '../kernel/observability/index.ts';
import { directorySection } from './config.ts';
import { directoryMigrations } from './migrations.ts';
import { openDirectory } from './open.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('openDirectory', () => {
    it('follows the stream of rooms when stats.enabled and user_directory.enabled are true, and not when both are false', async (context) => {
      const fixture = await RoomsUnderTest.open(open, directoryMigrations);
      const { database, streams, clock, rooms } = fixture;
      const { mock } = context.mock.method(rooms.engine.stream, 'subscribe');
      for (const enabled of [true, false]) {
        mock.resetCalls();
        const { stop } = await openDirectory({
          caches: fixture.caches,
          database,
          streams,
          clock,
          log: silentLogger,
          serverName: 'test',
          rooms,
          jobs: new Jobs({ database, clock, log: silentLogger, isOnlyProcess: true }),
          localUsers: { account: async () => undefined, profile: async () => ({}) },
          options: sectionDefaults(directorySection, { stats: { enabled }, user_directory: { enabled } }),
        });
        assert.equal(mock.callCount() > 0, enabled, `enabled: ${enabled}`);
        await stop();
      }
    });
  });
});
