import assert from 'node:assert/strict';
import { afterEach, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { AccountsServer } from '../../../test/support/servers/accounts-server.ts';
import { thirdPartyIdMigrations } from '../migrations.ts';
import { mailIdentifier } from '../test/server-with-mail.ts';
import { AccountAddresses } from './account-addresses.ts';
import { AllowedAddresses } from './allowed-addresses.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let server: AccountsServer;
  afterEach(() => server.stop());

  it('does the same work for logins with a known address, an unknown address and an invalid address when the password is wrong', async () => {
    let addresses: AccountAddresses | undefined;
    server = await AccountsServer.start(open, {
      migrations: thirdPartyIdMigrations,
      extensions: (environment) => {
        const allowed = new AllowedAddresses(null);
        const unused = { published: undefined as never, resetStages: [] };
        addresses = new AccountAddresses({ ...environment, ...unused, allowed });
        return { thirdPartyIds: addresses };
      },
    });
    const { userId } = await server.register('anna');
    await addresses!.add(userId, { medium: 'email', address: 'anna@example.org', validatedAt: 1 });
    const workOf = async (address: string) => {
      const before = { ...server.database.statistics };
      const body = { type: 'm.login.password', identifier: mailIdentifier(address), password: 'wrong' };
      assert.equal((await server.call('POST', '/login', { body })).status, 403);
      const { reads, writes, transactions } = server.database.statistics;
      return [reads - before.reads, writes - before.writes, transactions - before.transactions];
    };
    await workOf('anna@example.org');
    const known = await workOf('anna@example.org');
    assert.deepEqual(await workOf('ben@example.org'), known);
    assert.deepEqual(await workOf('not an address'), known);
    assert.ok(known[0]! > 0);
  });
});
