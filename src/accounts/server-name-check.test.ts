import assert from 'node:assert/strict';
import { afterEach, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { AccountsServer } from '../../test/support/servers/accounts-server.ts';
import { requireSameServerName } from './server-name-check.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let server: AccountsServer;
  afterEach(() => server.stop());

  it('requireSameServerName refuses a database with users of another server name, and accepts one without users', async () => {
    server = await AccountsServer.start(open);
    await requireSameServerName(server.database, 'test');
    await requireSameServerName(server.database, 'other.org:8448');
    await server.register('alice');
    await requireSameServerName(server.database, 'test');
    await assert.rejects(requireSameServerName(server.database, 'other.org:8448'), {
      name: 'StartFailure',
      message:
        'server_name is other.org:8448, but the users in the database belong to test: the server name cannot be changed',
    });
  });
});
