import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import { selectedDatabases } from '../support/databases/databases.ts';
import { startTestServer } from '../support/servers/server.ts';
import { registrations } from './registering-module.ts';

const module = join(import.meta.dirname, 'registering-module.ts');
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
        modules: { modules: [{ module, config: { key: 'passwords' } }] },
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
}
