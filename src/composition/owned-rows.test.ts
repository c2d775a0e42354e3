import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { tableColumns } from '../../test/support/databases/table-columns.ts';
import { migrations, slices } from '../slices.ts';

/** Tables with user ids whose rows stay, or that the owner of the account deletes itself, by the reason. */
const others: Readonly<Record<string, readonly string[]>> = {
  'accounts and devices delete them': [
    'devices',
    'user_ips',
    'access_tokens',
    'refresh_tokens',
    'interactive_sessions',
  ],
  'profiles publish the deletion of each field': ['profile_fields', 'listed_profiles'],
  'a job deletes them': ['user_directory', 'delayed_events', 'openid_tokens'],
  'the account itself': ['users', 'user_activity', 'erased_users', 'rate_limit_overrides', 'external_ids'],
  'other users and servers still need them': [
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
  'they are about users of other servers': ['remote_device_lists', 'remote_devices'],
};

forSelectedDatabases(import.meta.url, (open) => {
  describe('rows of accounts and devices in the manifests', () => {
    it('cover all tables with a column of user ids', async () => {
      const columns = await tableColumns(await open(migrations), open.kind);
      const accounts = slices.flatMap(({ accountRows }) => accountRows?.tables ?? []);
      const devices = slices.flatMap(({ deviceRows }) => deviceRows?.tables ?? []);
      const covered = [
        ...accounts.map(({ table }) => table),
        ...devices.map(({ table }) => table),
        // The function of the manifest deletes their rows.
        'sliding_sync_connections',
        ...Object.values(others).flat(),
      ];
      const naming = [...columns].filter(([, names]) => names.includes('user_id')).map(([table]) => table);
      assert.ok(naming.length > 30, 'no tables found');
      assert.deepEqual(naming.filter((table) => !covered.includes(table)).sort(), []);
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
