import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { TestClient } from '../../../test/support/users/test-client.ts';
import { accountMigrations } from '../../accounts/migrations.ts';
import type { AccountTables } from '../../accounts/tables.ts';
import { deviceMigrations } from '../../devices/migrations.ts';
import type { DeviceTables } from '../../devices/tables.ts';
import { migrate } from '../../kernel/database/index.ts';
import { profileMigrations } from '../../profiles/migrations.ts';
import type { ProfileTables } from '../../profiles/tables.ts';
import { Administration } from '../test/administration.ts';
import { randomNumbers } from '../test/random-numbers.ts';
import { userListChecks, userListMigrations } from './migrations.ts';
import { UserList, type UserOrder } from './user-list.ts';

interface Listed {
  readonly name: string;
  readonly [field: string]: unknown;
}

/** The options of accounts that all test servers have. */
const accountOptions = {
  enable_registration: true,
  enable_registration_without_verification: true,
  registration_shared_secret: 'shared secret',
  bcrypt_rounds: 4,
};

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('GET /users of the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    before(async () => {
      server = await startTestServer({
        database: kind,
        config: { accounts: { ...accountOptions, allow_guest_access: true } },
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

    it('lists users who are neither deactivated nor locked, sorted by id, with all fields', async () => {
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
      assert.deepEqual(await names({ name: 'zoë', admins: false }), ['ben']);
      assert.deepEqual(await names({ name: 'zoë', admins: true }), []);
      assert.deepEqual(await names({ name: ':test' }), []);
      assert.deepEqual(await names({ name: 'a\0nna' }), ['anna']);
      assert.deepEqual(await names({ user_id: 'E' }), ['admin', 'anna', 'ben', 'emil']);
      assert.deepEqual(await names({ user_id: '@em' }), ['emil']);
      assert.deepEqual(await names({ not_user_type: ['bot'] }), ['admin', 'anna', 'emil']);
      assert.deepEqual(await names({ not_user_type: [''] }), ['ben']);
      assert.deepEqual(await names({ not_user_type: ['bot', ''] }), []);
    });

    it('GET /v3/users lists deactivated users, users who are not deactivated, or both', async () => {
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

    it('responds 400 M_INVALID_PARAM to invalid parameters, and 403 M_FORBIDDEN to users who are not administrators', async () => {
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
      const answer = await frank.request('GET', '/_synapse/admin/v2/users', undefined);
      assert.deepEqual([answer.status, answer.body['errcode']], [403, 'M_FORBIDDEN']);
      assert.equal((await server.api('GET', '/_server/admin/v2/users')).status, 401);
    });
  });
});

forSelectedDatabases(import.meta.url, (open) => {
  describe('UserList', () => {
    const lastSeen = { flush: () => Promise.resolve() };

    it('returns the same users by cursors and by offsets, in the orders of names and of last activity', async () => {
      const before = [...accountMigrations, ...deviceMigrations, ...profileMigrations];
      const database = await open(before);
      const list = new UserList({ database, lastSeen });
      // Name and last activity of each user; 0 for users who never used a device.
      const users: Record<string, [name: string | undefined, lastSeenAt: number]> = {
        '@a:test': ['Zoe', 30],
        '@b:test': [undefined, 0],
        '@c:test': ['Ann', 20],
        '@d:test': [undefined, 0],
        '@e:test': ['Ann', 30],
        '@f:test': ['Bob', 5],
        '@g:test': ['Ann', 40],
      };
      await database.transaction<AccountTables & ProfileTables & DeviceTables, void>(async (writer) => {
        for (const [userId, [name, lastSeenAt]] of Object.entries(users)) {
          const isDeactivated = userId === '@g:test';
          await writer
            .insertInto('users')
            .values({ ...account(userId), is_deactivated: isDeactivated ? 1 : 0 })
            .execute();
          const field = { user_id: userId, field: 'displayname', value: JSON.stringify(name) };
          if (name !== undefined) await writer.insertInto('profile_fields').values(field).execute();
          if (lastSeenAt > 0)
            await writer
              .insertInto('user_activity')
              .values({ user_id: userId, last_seen_at: lastSeenAt })
              .execute();
        }
      });
      await database.transaction<DeviceTables, void>(async (writer) => {
        await writer
          .insertInto('user_activity')
          .values({ user_id: '@none:test', last_seen_at: 35 })
          .execute();
      });
      await migrate(database, [...before, ...userListMigrations]);
      for (const check of userListChecks)
        assert.equal((await check.find({ main: database, state: database })).count, 0, check.problem);
      const read = async (by: UserOrder, descending: boolean, name?: string, source = list) => {
        const filter = { notTypes: [], deactivated: false, name };
        const readFrom = (start: Parameters<UserList['page']>[2]['start']) =>
          source.page(filter, { by, descending }, { start, limit: 2 });
        const ids: string[] = [];
        for (let after: { value: string | number; key: string | number } | undefined; ; ) {
          const page = await readFrom(after ? { after } : { offset: 0 });
          const same = await readFrom({ offset: ids.length });
          assert.deepEqual(same, page);
          ids.push(...page.rows.map(({ user_id: userId }) => userId[1]!));
          after = page.next;
          if (after === undefined) return ids.join('');
        }
      };
      assert.equal(await read('displayname', false), 'bdcefa');
      assert.equal(await read('displayname', true), 'afcebd');
      assert.equal(await read('last_seen_ts', false), 'bdfcae');
      assert.equal(await read('last_seen_ts', true), 'aecfbd');
      // Collects at most one id in a search, and only counts the users if more match.
      const countingList = new UserList({ database, lastSeen }, 1);
      assert.equal(await read('displayname', true, undefined, countingList), 'afcebd');
      assert.equal(await read('last_seen_ts', false, undefined, countingList), 'bdfcae');
      for (const source of [list, countingList]) {
        assert.deepEqual(await source.count({ notTypes: [], name: 'a', deactivated: false }), 3);
        assert.equal(await read('name', true, 'A', source), 'eca');
        assert.equal(await read('displayname', false, 'A', source), 'cea');
        assert.equal(await read('last_seen_ts', true, 'A', source), 'aec');
        assert.equal(await read('name', false, 'nothing', source), '');
      }
    });

    it('returns the users at random offsets as in a sorted array of all users, in both directions, for the orders by fields with few values', async () => {
      const database = await open([
        ...accountMigrations,
        ...deviceMigrations,
        ...profileMigrations,
        ...userListMigrations,
      ]);
      const random = randomNumbers();
      const users = Array.from({ length: 60 }, (_, index) => ({
        ...account(`@${random(1_000)}-${index}:test`),
        user_type: [null, 'bot', 'support', ''][random(4)]!,
        is_guest: random(2),
        is_admin: random(4) === 0 ? 1 : 0,
        is_deactivated: random(2),
        is_locked: 0,
        is_shadow_banned: 1,
      }));
      await database.transaction<AccountTables, void>(async (writer) => {
        for (const user of users) await writer.insertInto('users').values(user).execute();
      });
      const values: Partial<Record<UserOrder, (user: (typeof users)[number]) => string | number>> = {
        is_guest: (user) => user.is_guest,
        admin: (user) => user.is_admin,
        user_type: (user) => user.user_type ?? '',
        deactivated: (user) => user.is_deactivated,
        shadow_banned: (user) => user.is_shadow_banned,
        locked: (user) => user.is_locked,
      };
      const list = new UserList({ database, lastSeen });
      for (const [by, value] of Object.entries(values)) {
        for (const descending of [false, true]) {
          for (const guests of [undefined, false]) {
            const expected = users
              .filter((user) => guests === undefined || user.is_guest === 0)
              .sort((one, other) => {
                const order = value(one) < value(other) ? -1 : value(one) > value(other) ? 1 : 0;
                return (descending ? -order : order) || (one.user_id < other.user_id ? -1 : 1);
              })
              .map((user) => user.user_id);
            const total = expected.length;
            for (const offset of [
              1,
              1 + random(total),
              1 + random(total),
              total - 7,
              total - 6,
              total,
              total + 1,
            ]) {
              const filter = { notTypes: [], guests };
              const order = { by: by as UserOrder, descending };
              const { rows, next } = await list.page(filter, order, { start: { offset }, limit: 6 });
              const ids = rows.map((user) => user.user_id);
              const message = JSON.stringify([filter, order, offset]);
              assert.deepEqual(ids, expected.slice(offset, offset + 6), message);
              const last = users.find((user) => user.user_id === ids.at(-1));
              const cursor = last && { value: value(last), key: last.user_id };
              assert.deepEqual(next, offset + 6 < total ? cursor : undefined, message);
              if (next === undefined) continue;
              const following = await list.page(filter, order, { start: { after: next }, limit: 6 });
              assert.deepEqual(
                following.rows.map((user) => user.user_id),
                expected.slice(offset + 6, offset + 12),
                message,
              );
            }
          }
        }
      }
    });
  });
});

const account = (userId: string) => ({
  user_id: userId,
  folded_id: userId,
  created_at: 1,
  password_hash: null,
  user_type: null,
  appservice_id: null,
  is_guest: 0,
  is_admin: 0,
  is_deactivated: 0,
  is_erased: 0,
  is_locked: 0,
  is_suspended: 0,
});
