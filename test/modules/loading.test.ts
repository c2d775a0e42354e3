import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { selectedDatabases } from '../support/databases/databases.ts';
import { startTestServer } from '../support/servers/server.ts';
import { registrations } from './registering-module.ts';

const file = join(import.meta.dirname, 'registering-module.ts');
const clientApi = '/_matrix/client/v3';

for (const database of selectedDatabases(import.meta.url)) {
  it(`logs in with the passwords of a module only, where stored passwords are off, on ${database}`, async () => {
    registrations.set('passwords', (api) =>
      api.registerPasswordProvider({
        loginTypes: { 'm.login.password': ['password'] },
        async authenticate({ userId, fields }) {
          if (!(await api.users.get(userId))) await api.users.register('dave');
          return fields['password'] === 'from the module' ? userId : undefined;
        },
      }),
    );
    const server = await startTestServer({
      database,
      config: {
        accounts: { password_config: { localdb_enabled: false } },
        modules: { modules: [{ module: file, config: { key: 'passwords' } }] },
      },
    });
    try {
      const { body } = await server.api('GET', `${clientApi}/login`);
      assert.ok((body['flows'] as { type: string }[]).some(({ type }) => type === 'm.login.password'));
      const login = (password: string) =>
        server.api('POST', `${clientApi}/login`, {
          body: { type: 'm.login.password', user: 'dave', password },
        });
      assert.equal((await login('from the module')).status, 200);
      assert.equal((await login('other')).status, 403);
    } finally {
      await server.stop();
    }
  });

  describe(`modules that cannot be loaded on ${database}`, () => {
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
