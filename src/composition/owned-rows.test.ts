import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { tableColumns } from '../../test/support/databases/table-columns.ts';
import { migrations, slices } from '../slices.ts';

/** Tables with user ids that neither `accountRows` nor `deviceRows` of a manifest names, by the reason why not. */
const undeclaredTables: Readonly<Record<string, readonly string[]>> = {
  'the slices accounts and devices delete the rows themselves': [
    'devices',
    'user_ips',
    'access_tokens',
    'refresh_tokens',
    'interactive_sessions',
  ],
  'profiles publish the deletion of each field': ['profile_fields', 'listed_profiles'],
  'a job deletes the rows': ['user_directory', 'delayed_events', 'openid_tokens'],
  'the rows are the account itself': [
    'users',
    'user_activity',
    'erased_users',
    'rate_limit_overrides',
    'external_ids',
  ],
  'other users and servers still need the rows': [
    'device_list_changes',
    'unannounced_devices',
    'announced_device_lists',
    'local_media',
    'media_usage',
    'memberships',
    'stripped_state',
    'outside_events',
    'receipts',
    'presence',
    'reports',
    'server_notice_rooms',
  ],
  'the rows are about users of other servers': ['remote_device_lists', 'remote_devices'],
};

forSelectedDatabases(import.meta.url, (open) => {
  describe('rows of accounts and devices in the manifests', () => {
    it('each table with a column of user ids is in a manifest, or in the list of this test with the reason why not', async () => {
      const columns = await tableColumns(await open(migrations), open.kind);
      const accounts = slices.flatMap(({ accountRows }) => accountRows?.tables ?? []);
      const devices = slices.flatMap(({ deviceRows }) => deviceRows?.tables ?? []);
      const covered = [
        ...accounts.map(({ table }) => table),
        ...devices.map(({ table }) => table),
        // A function in the manifest of the slice sync deletes the rows of this table.
        'sliding_sync_connections',
        ...Object.values(undeclaredTables).flat(),
      ];
      const withUserIds = [...columns]
        .filter(([, names]) => names.includes('user_id'))
        .map(([table]) => table);
      assert.ok(withUserIds.length > 30, 'no tables found');
      assert.deepEqual(withUserIds.filter((table) => !covered.includes(table)).sort(), []);
      for (const { table, column } of accounts) assert.ok(columns.get(table)?.includes(column), table);
      for (const { table, userColumn, deviceColumn } of devices) {
        assert.ok(
          columns.get(table)?.includes(userColumn) && columns.get(table)?.includes(deviceColumn),
          table,
        );
      }
    });
  });
});
