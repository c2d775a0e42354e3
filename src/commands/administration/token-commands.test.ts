import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { administeredServer } from './test/administered-server.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`hearth token on ${database}`, () => {
    const subject = administeredServer(database);
    const { succeeds, fails, json } = subject;

    it('lists tokens whose expiry_time is later than the latest date of JavaScript', async () => {
      const body = { token: 'late', expiry_time: Number.MAX_SAFE_INTEGER };
      const path = '/_synapse/admin/v1/registration_tokens';
      await subject.server.api('POST', `${path}/new`, { token: subject.adminToken, body });
      assert.match(await succeeds('token', 'list'), /^late .*\+275760-09-13 00:00/m);
      await subject.server.api('DELETE', `${path}/late`, { token: subject.adminToken });
    });

    it('creates, lists, changes and deletes registration tokens', async () => {
      assert.equal(await succeeds('token', 'list'), 'There are no tokens.\n');
      assert.equal(
        await succeeds('token', 'create', '--token', 'friends', '--uses', '5', '--expires', '2099-01-01'),
        'friends\n',
      );
      assert.match(await succeeds('token', 'create'), /^\S{16}\n$/);
      assert.match(
        await succeeds('token', 'list', '--valid'),
        /^Token .*\n(.*\n)?friends +5 +0 +0 {2}2099-01-01 00:00\n/m,
      );
      assert.deepEqual(await json('token', 'list', '--invalid'), []);
      const changed = await json('token', 'change', 'friends', '--uses', 'any', '--expires', 'never');
      assert.deepEqual([changed.uses_allowed, changed.expiry_time], [null, null]);
      const soon = await json('token', 'change', 'friends', '--expires', '1h');
      assert.ok(Math.abs(soon.expiry_time - Date.now() - 3_600_000) < 60_000);
      assert.equal(await succeeds('token', 'delete', 'friends'), 'Deleted the token friends.\n');
      assert.match(await fails('token', 'delete', 'friends'), /answered 404/);
      assert.match(await fails('token', 'change', 'friends'), /give --uses or --expires/);
      assert.match(await fails('token', 'create', '--uses', 'some'), /expected a number or any/);
    });
  });
}
