import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { MatrixError } from '../../protocol/index.ts';
import { Clients } from '../clients/clients.ts';
import { oauthMigrations } from '../migrations.ts';
import { elementX } from '../test/oauth-client.ts';
import { OAuthSessions, type OAuthSessionsDeps } from './oauth-sessions.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('OAuthSessions', () => {
    const phone = { userId: '@alice:test', deviceId: 'PHONE', scope: '', providerSession: undefined };
    /** Opens a session for a phone of Alice by the functions of `login`. */
    const openBy = async (login: OAuthSessionsDeps['login']) => {
      const database = await open(oauthMigrations);
      const clients = new Clients({ database, clock: manualClock() });
      const sessions = new OAuthSessions({
        database,
        clock: manualClock(),
        clients,
        providerSessions: undefined,
        devices: {} as never,
        sessions: {} as never,
        login,
      });
      const client = await clients.get((await clients.register(elementX)).clientId);
      return sessions.open(client, phone, '::1', async () => assert.fail('no code is used'));
    };

    it('throws access_denied, and opens no session, when the check of the login throws an error', async () => {
      const checked: unknown[] = [];
      const opened = openBy({
        check: async ({ userId, deviceId, ip }) => {
          checked.push([userId, deviceId, ip]);
          throw new MatrixError(403, 'M_RESOURCE_LIMIT_EXCEEDED', 'full');
        },
        open: async () => assert.fail('no session is opened'),
      });
      await assert.rejects(opened, { code: 'access_denied', message: 'full' });
      assert.deepEqual(checked, [['@alice:test', 'PHONE', '::1']]);
    });

    it('throws access_denied when the id of the device is refused', async () => {
      const opened = openBy({
        check: async () => undefined,
        open: async () => {
          throw new MatrixError(403, 'M_FORBIDDEN', 'refused');
        },
      });
      await assert.rejects(opened, { code: 'access_denied', message: 'refused' });
    });
  });
});
