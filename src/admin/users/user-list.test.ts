import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forServerDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';

interface Listed {
  readonly name: string;
  readonly [field: string]: unknown;
}

/** The options of accounts that all test servers have. */
const open = {
  enable_registration: true,
  enable_registration_without_verification: true,
  registration_shared_secret: 'shared secret',
  bcrypt_rounds: 4,
};

forServerDatabases(import.meta.url, ({ kind }) => {
  describe('GET /users of the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    before(async () => {
      server = await startTestServer({
        database: kind,
        config: { accounts: { ...open, allow_guest_access: true } },
      });
      admin = await Administration.open(server);
      for (const name of ['anna', 'ben', 'carl', 'dora', 'emil']) await TestClient.register(server, name);
      await server.api('POST', '/_matrix/client/v3/register', { query: { kind: 'guest' }, body: {} });
      await admin.do('PUT', '/v2/users/@ben:test', { displayname: 'Zoë "100%_sure"', user_type: 'bot' });
      await admin.do('PUT', '/v2/users/@carl:test', { locked: true });
      await admin.do('POST', '/v1/deactivate/@dora:test', { erase: true });
    });
    after(() => server.stop());

    const list = async (query: Record<string, string | number | boolean | string[]> = {}, version = 'v2') => {
      const body = await admin.do('GET', `/${version}/users`, undefined, query);
      return { ...body, users: body['users'] as Listed[] } as {
        users: Listed[];
        total: number;
        next_token?: string;
      };
    };
    const names = async (query: Parameters<typeof list>[0] = {}, version = 'v2') =>
      (await list({ guests: false, ...query }, version)).users.map(({ name }) => name.slice(1, -5));

    it('lists active users with all fields in the order of their ids', async () => {
      const { users, total, next_token } = await list({ guests: false });
      assert.deepEqual([total, next_token], [4, undefined]);
      assert.deepEqual(
        users.map(({ name }) => name),
        ['@admin:test', '@anna:test', '@ben:test', '@emil:test'],
      );
      const { creation_ts, last_seen_ts, ...ben } = users[2]!;
      assert.ok(Number(creation_ts) > 1e12);
      assert.deepEqual([users[0]!['admin'], users[1]!['admin'], last_seen_ts], [true, false, null]);
      assert.deepEqual(ben, {
        name: '@ben:test',
        is_guest: false,
        admin: false,
        user_type: 'bot',
        deactivated: false,
        erased: false,
        shadow_banned: false,
        displayname: 'Zoë "100%_sure"',
        avatar_url: null,
        locked: false,
        suspended: false,
      });
    });

    it('filters users by name, id, guests, administrators, type, lock and deactivation', async () => {
      assert.equal((await list()).total, 5);
      assert.equal((await list({ deactivated: true })).total, 6);
      assert.deepEqual(await names({ locked: true }), ['admin', 'anna', 'ben', 'carl', 'emil']);
      assert.deepEqual(await names({ admins: true }), ['admin']);
      assert.deepEqual(await names({ admins: false }), ['anna', 'ben', 'emil']);
      assert.deepEqual(await names({ name: 'AN' }), ['anna']);
      assert.deepEqual(await names({ name: 'zoë' }), ['ben']);
      assert.deepEqual(await names({ name: '"100%_' }), ['ben']);
      assert.deepEqual(await names({ name: '%' }), ['ben']);
      assert.deepEqual(await names({ name: ':test' }), []);
      assert.deepEqual(await names({ name: 'a\0nna' }), ['anna']);
      assert.deepEqual(await names({ user_id: 'E' }), ['admin', 'anna', 'ben', 'emil']);
      assert.deepEqual(await names({ user_id: '@em' }), ['emil']);
      assert.deepEqual(await names({ not_user_type: ['bot'] }), ['admin', 'anna', 'emil']);
      assert.deepEqual(await names({ not_user_type: [''] }), ['ben']);
      assert.deepEqual(await names({ not_user_type: ['bot', ''] }), []);
    });

    it('version 3 selects deactivated users only, active users only, or both', async () => {
      assert.deepEqual(await names({ deactivated: true }, 'v3'), ['dora']);
      assert.deepEqual(await names({ deactivated: false }, 'v3'), ['admin', 'anna', 'ben', 'emil']);
      assert.deepEqual(await names({}, 'v3'), ['admin', 'anna', 'ben', 'dora', 'emil']);
    });

    it('orders users by each field in both directions, and by user id where the field is equal', async () => {
      for (const order_by of [
        'name',
        'is_guest',
        'admin',
        'user_type',
        'deactivated',
        'shadow_banned',
        'displayname',
        'avatar_url',
        'creation_ts',
        'last_seen_ts',
      ]) {
        for (const dir of ['f', 'b']) {
          const whole = await names({ order_by, dir });
          assert.equal(whole.length, 4, order_by);
          const paged: string[] = [];
          for (let from = '0'; ; ) {
            const page = await list({ guests: false, order_by, dir, limit: 1, from });
            paged.push(...page.users.map(({ name }) => name.slice(1, -5)));
            if (page.next_token === undefined) break;
            from = page.next_token;
          }
          assert.deepEqual(paged, whole, `${order_by} ${dir}`);
        }
      }
      assert.deepEqual(await names({ order_by: 'admin', dir: 'b' }), ['admin', 'anna', 'ben', 'emil']);
      assert.deepEqual(await names({ order_by: 'displayname', dir: 'b' }), ['emil', 'anna', 'admin', 'ben']);
      assert.deepEqual(await names({ order_by: 'creation_ts' }), ['admin', 'anna', 'ben', 'emil']);
    });

    it('continues after the last user of a page when users are added or removed between two requests', async () => {
      const first = await list({ guests: false, limit: 2 });
      assert.deepEqual([first.users.length, first.next_token, first.total], [2, '2', 4]);
      await TestClient.register(server, 'aaron');
      const second = await list({ guests: false, limit: 2, from: first.next_token! });
      assert.deepEqual(
        second.users.map(({ name }) => name),
        ['@ben:test', '@emil:test'],
      );
      await admin.do('POST', '/v1/deactivate/@aaron:test', {});
      await server.restart();
      assert.deepEqual(await names({ from: 1, limit: 2 }), ['anna', 'ben']);
    });

    it('refuses invalid parameters with 400 M_INVALID_PARAM, and other users with 403 M_FORBIDDEN', async () => {
      for (const query of [
        { from: -1 },
        { limit: -1 },
        { order_by: 'password' },
        { dir: 'x' },
        { guests: 'maybe' },
      ]) {
        const refused = await admin.refused('GET', '/v2/users', undefined, query as never);
        assert.deepEqual(refused, [400, 'M_INVALID_PARAM'], JSON.stringify(query));
      }
      const frank = await TestClient.register(server, 'frank');
      const answer = await frank.ask('GET', '/_synapse/admin/v2/users', undefined);
      assert.deepEqual([answer.status, answer.body['errcode']], [403, 'M_FORBIDDEN']);
      assert.equal((await server.api('GET', '/_server/admin/v2/users')).status, 401);
    });
  });
});
