import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { selectedDatabases } from '../support/databases/databases.ts';
import { startTestServer } from '../support/servers/server.ts';
import { registrations } from './registering-module.ts';

const file = join(import.meta.dirname, 'registering-module.ts');

for (const database of selectedDatabases(import.meta.url)) {
  describe(`modules that cannot be loaded, with the database ${database}`, () => {
    const start = (module: string, config: object) =>
      startTestServer({ database, config: { modules: { modules: [{ module, config: { ...config } }] } } });

    it('refuses to start with a module that cannot be loaded, and names the module in the reason', async () => {
      registrations.set('failing', () => {
        throw new Error('the option x is missing');
      });
      registrations.set('outside', (api) => api.registerWebResource('/_matrix/client/v3/login', () => ({})));
      await assert.rejects(start(file, { key: 'failing' }), {
        name: 'StartFailure',
        message: `the module ${file} cannot be loaded: the option x is missing`,
      });
      await assert.rejects(start(file, { key: 'outside' }), /is not a path below \/_synapse\/client\//);
      await assert.rejects(
        start('hearth-no-such-package', {}),
        /the module hearth-no-such-package cannot be imported/,
      );
      await assert.rejects(
        start('ldap_auth_provider.LdapAuthProviderModule', {}),
        /LdapAuthProviderModule is a module in Python .* Instead: contrib\/modules\/ldap-login\.ts, or an OpenID Connect provider/,
      );
      await assert.rejects(start('node:path', {}), /has no function as its default export/);
    });
  });
}
