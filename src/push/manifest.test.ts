import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { alice, bob } from '../../test/support/rooms/rooms.ts';
import { OwnedRows } from '../kernel/slices/index.ts';
import { setRuleEnabled } from '../protocol/index.ts';
import { pushManifest } from './manifest.ts';
import type { PushTables } from './tables.ts';
import { openUnread } from './test/unread-under-test.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('pushManifest.accountRows', () => {
    it('deletes the unread tallies of deactivated accounts, and the push rules of erased accounts', async () => {
      const { fixture, roomId, unread, counts, rules } = await openUnread(open);
      for (const userId of [alice, bob]) {
        await rules.change(userId, (stored) => setRuleEnabled(stored, 'override', '.m.rule.master', false));
      }
      await Promise.all(Array.from({ length: 200 }, () => fixture.say(alice, roomId, 'x')));
      for (const userId of [alice, bob]) await counts(userId, roomId);
      await unread.stop();
      const owners = async (table: keyof PushTables) => {
        const rows = await fixture.database
          .reader<PushTables>()
          .selectFrom(table)
          .select('user_id')
          .execute();
        return rows.map((row) => row.user_id).sort();
      };
      assert.deepEqual(await owners('unread_tallies'), [alice, bob]);
      const deactivate = (userId: string, erase: boolean) =>
        fixture.streams.write((writer, publish) =>
          new OwnedRows([pushManifest]).deactivated(writer, publish, { userId, erase }),
        );
      await deactivate(alice, false);
      assert.deepEqual([await owners('unread_tallies'), await owners('push_rules')], [[bob], [alice, bob]]);
      await deactivate(bob, true);
      assert.deepEqual([await owners('unread_tallies'), await owners('push_rules')], [[], [alice]]);
    });
  });
});
