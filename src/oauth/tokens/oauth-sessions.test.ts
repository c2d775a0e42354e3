import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { MatrixError } from '../../protocol/index.ts';
import { Clients } from '../clients/clients.ts';
import { oauthMigrations } from '../migrations.ts';
import { elementX } from '../test/oauth-client.ts';
import { OAuthSessions } from './oauth-sessions.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('OAuthSessions', () => {
    it('throws access_denied, and opens no session, when the check of the login throws an error', async () => {
      const database = await open(oauthMigrations);
      const clients = new Clients({ database, clock: manualClock() });
      const checked: unknown[] = [];
      const sessions = new OAuthSessions({
        database,
        clock: manualClock(),
        clients,
        providerSessions: undefined,
        devices: {} as never,
        sessions: {} as never,
        login: {
          check: async ({ userId, deviceId, ip }) => {
            checked.push([userId, deviceId, ip]);
            throw new MatrixError(403, 'M_RESOURCE_LIMIT_EXCEEDED', 'full');
          },
          open: async () => assert.fail('no session is opened'),
        },
      });
      const client = await clients.get((await clients.register(elementX)).clientId);
      const granted = { userId: '@alice:test', deviceId: 'PHONE', scope: '', providerSession: undefined };
      const opened = sessions.open(client, granted, '::1', async () => assert.fail('no code is used'));
      await assert.rejects(opened, { code: 'access_denied', message: 'full' });
      assert.deepEqual(checked, [['@alice:test', 'PHONE', '::1']]);
    });
  });
});
