import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer } from '../../../test/support/servers/server.ts';
import { Administration } from '../test/administration.ts';

const path = '/v1/registration_tokens';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('registration tokens of the admin API', () => {
    it('creates, lists, shows, changes and deletes registration tokens, and leaves them out of the audit lines of the log', async () => {
      const lines: string[] = [];
      const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
      const server = await startTestServer({ database: kind, log });
      try {
        const admin = await Administration.open(server);
        const made = await admin.do('POST', `${path}/new`, { token: 'welcome1', uses_allowed: 3 });
        const expected = { token: 'welcome1', uses_allowed: 3, pending: 0, completed: 0, expiry_time: null };
        assert.deepEqual(made, expected);
        const generated = await admin.do('POST', `${path}/new`, {
          length: 32,
          uses_allowed: null,
          expiry_time: null,
        });
        assert.equal(String(generated['token']).length, 32);
        const spent = await admin.do('POST', `${path}/new`, { token: 'spent', uses_allowed: 0 });
        const list = async (query = {}) =>
          (await admin.do('GET', path, undefined, query))['registration_tokens'] as unknown[];
        assert.equal((await list()).length, 3);
        assert.deepEqual(await list({ valid: false }), [spent]);
        assert.equal((await list({ valid: true })).length, 2);
        assert.deepEqual(await admin.do('GET', `${path}/welcome1`), expected);
        const later = 4_000_000_000_000;
        const changed = await admin.do('PUT', `${path}/welcome1`, { uses_allowed: null, expiry_time: later });
        assert.deepEqual(changed, { ...expected, uses_allowed: null, expiry_time: later });
        assert.deepEqual(await admin.do('DELETE', `${path}/welcome1`), {});
        assert.deepEqual(await admin.refused('GET', `${path}/welcome1`), [404, 'M_NOT_FOUND']);
        assert.deepEqual(await admin.refused('PUT', `${path}/none`, {}), [404, 'M_NOT_FOUND']);
        for (const method of ['GET', 'PUT', 'DELETE'])
          assert.deepEqual(
            await admin.refused(method, `${path}/a%00`, method === 'PUT' ? { uses_allowed: 1 } : undefined),
            [404, 'M_NOT_FOUND'],
          );
        assert.deepEqual(await admin.refused('POST', `${path}/new`, { token: 'a b' }), [
          400,
          'M_INVALID_PARAM',
        ]);
        assert.deepEqual(await admin.refused('POST', `${path}/new`, { token: 5 }), [400, 'M_BAD_JSON']);
        const audit = lines.filter((line) => line.includes('"logger":"admin"')).join('');
        assert.ok(audit.includes('registration_tokens') && !audit.includes('welcome1'));
      } finally {
        await server.stop();
      }
    });
  });
});
