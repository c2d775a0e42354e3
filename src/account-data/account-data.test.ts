import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { manualClock } from '../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { sectionDefaults } from '../../test/support/inputs/section-defaults.ts';
import { AccountsServer } from '../../test/support/servers/accounts-server.ts';
import { CacheRegistry, cachesSection } from '../kernel/caches/index.ts';
import { OwnedRows } from '../kernel/slices/index.ts';
import { AccountData, type ComputedAccountData } from './account-data.ts';
import { IgnoredUsers } from './ignored-users.ts';
import { accountDataManifest } from './manifest.ts';
import { accountDataMigrations } from './migrations.ts';
import { accountDataRoutes, tagRoutes } from './routes.ts';
import { Tags } from './tags.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let server: AccountsServer;
  let accountData: AccountData;
  let token: string;
  afterEach(() => server.stop());
  const start = async (computed: ComputedAccountData = new Map()) => {
    server = await AccountsServer.start(open, {
      migrations: accountDataMigrations,
      extensions: (environment) => {
        accountData = new AccountData({ ...environment, computed });
        return { lifecycleHooks: [new OwnedRows([accountDataManifest])] };
      },
      routes: () => [...accountDataRoutes(accountData), ...tagRoutes(new Tags(accountData))],
    });
    token = (await server.register('alice')).token;
  };
  const get = (path: string) => server.call('GET', `/user/@alice:test${path}`, { token });
  const put = (path: string, body: unknown) =>
    server.call('PUT', `/user/@alice:test${path}`, { token, body });
  const statusAndErrcode = ({ status, body }: { status: number; body: Record<string, unknown> }) => [
    status,
    body['errcode'],
  ];
  const room = '/rooms/!room:test';

  describe('account data', () => {
    it('account data is returned as it was set, globally and per room', async () => {
      await start();
      const content = { list: [1, 'a\0b', { deep: null }], big: 1.5 };
      assert.deepEqual((await put('/account_data/org.example.x', content)).body, {});
      await put(`${room}/account_data/org.example.x`, { room: true });
      assert.deepEqual((await get('/account_data/org.example.x')).body, content);
      assert.deepEqual((await get(`${room}/account_data/org.example.x`)).body, { room: true });
      assert.deepEqual(statusAndErrcode(await get('/account_data/org.example.y')), [404, 'M_NOT_FOUND']);
      assert.deepEqual(statusAndErrcode(await get('/rooms/!other/account_data/org.example.x')), [
        404,
        'M_NOT_FOUND',
      ]);
    });

    it('DELETE and an empty object delete account data: `changesSince` returns it as an empty object, `all` leaves it out', async () => {
      await start();
      const unstable = '/_matrix/client/unstable/org.matrix.msc3391/user/@alice:test';
      const deletions = [
        (path: string) => server.call('DELETE', `/user/@alice:test${path}`, { token }),
        (path: string) => server.call('DELETE', unstable + path, { token }),
        (path: string) => put(path, {}),
      ];
      for (const remove of deletions) {
        for (const path of ['/account_data/org.example.x', `${room}/account_data/org.example.x`]) {
          await put(path, { a: 1 });
          const positionBefore = server.streams.current;
          assert.deepEqual([(await remove(path)).status, (await get(path)).status], [200, 404]);
          assert.deepEqual(await accountData.all('@alice:test'), []);
          const changes = await accountData.changesSince(
            '@alice:test',
            positionBefore,
            server.streams.current,
          );
          assert.deepEqual(
            changes.map(({ type, content }) => [type, content]),
            [['org.example.x', {}]],
          );
          const deleted = server.streams.current;
          assert.equal((await remove(path)).status, 200);
          assert.equal(server.streams.current, deleted, 'a repeated deletion changes nothing');
        }
        assert.deepEqual(statusAndErrcode(await remove('/account_data/m.fully_read')), [405, 'M_BAD_JSON']);
      }
      const other = '/user/@bob:test/account_data/a';
      assert.deepEqual(statusAndErrcode(await server.call('DELETE', other, { token })), [403, 'M_FORBIDDEN']);
    });

    it('account data and tags can be read and changed by their user only, and other users receive 403 M_FORBIDDEN', async () => {
      await start();
      for (const path of ['/user/@bob:test/account_data/a', '/user/@bob:test/rooms/!a:test/account_data/a']) {
        assert.deepEqual(statusAndErrcode(await server.call('PUT', path, { token, body: {} })), [
          403,
          'M_FORBIDDEN',
        ]);
        assert.deepEqual(statusAndErrcode(await server.call('GET', path, { token })), [403, 'M_FORBIDDEN']);
      }
      for (const path of ['/user/@bob:test/rooms/!a:test/tags', '/user/@bob:test/rooms/!a:test/tags/x']) {
        const method = path.endsWith('x') ? 'DELETE' : 'GET';
        assert.deepEqual(statusAndErrcode(await server.call(method, path, { token })), [403, 'M_FORBIDDEN']);
      }
    });

    it('accepts 5,000 ignored users and keeps them in memory; more of them, and invite permissions with 30,000 blocked users, are rejected with 413 M_TOO_LARGE', async () => {
      await start();
      const userId = '@alice:test';
      const listOf = (count: number) => ({
        ignored_users: Object.fromEntries(
          [userId, ...Array.from({ length: count - 1 }, (_, index) => `@user${index}:test`)].map((id) => [
            id,
            {},
          ]),
        ),
      });
      const path = '/account_data/m.ignored_user_list';
      assert.deepEqual(statusAndErrcode(await put(path, listOf(5_001))), [413, 'M_TOO_LARGE']);
      assert.equal((await put(path, listOf(5_000))).status, 200);
      const caches = new CacheRegistry(manualClock(), sectionDefaults(cachesSection));
      const ignored = new IgnoredUsers(accountData, caches);
      const first = await ignored.of(userId);
      assert.equal(first.size, 4_999);
      assert.equal(ignored.of(userId), first);
      const permissions = '/account_data/m.invite_permission_config';
      const blocked = Array.from({ length: 30_000 }, (_, index) => `@${index}:test`);
      assert.deepEqual(statusAndErrcode(await put(permissions, { blocked_users: blocked })), [
        413,
        'M_TOO_LARGE',
      ]);
      assert.equal((await put(permissions, { blocked_users: blocked.slice(0, 5_000) })).status, 200);
    });

    it('refuses account data of server-controlled types with 405 M_BAD_JSON', async () => {
      await start(new Map([['m.push_rules', async () => ({ global: {} })]]));
      for (const type of ['m.fully_read', 'm.push_rules']) {
        assert.deepEqual(statusAndErrcode(await put(`/account_data/${type}`, {})), [405, 'M_BAD_JSON']);
        assert.deepEqual(statusAndErrcode(await put(`${room}/account_data/${type}`, {})), [
          405,
          'M_BAD_JSON',
        ]);
      }
      assert.deepEqual((await get('/account_data/m.push_rules')).body, { global: {} });
    });

    it('account data that is not a JSON object, or has an invalid type or room id, is rejected with 400, and too large account data with 413 M_TOO_LARGE', async () => {
      await start();
      assert.deepEqual(statusAndErrcode(await put('/account_data/a', [])), [400, 'M_BAD_JSON']);
      assert.deepEqual(statusAndErrcode(await put('/account_data/a', 'x')), [400, 'M_BAD_JSON']);
      assert.deepEqual(statusAndErrcode(await put(`/account_data/${'x'.repeat(256)}`, {})), [
        400,
        'M_INVALID_PARAM',
      ]);
      assert.deepEqual(statusAndErrcode(await put('/account_data/a%00b', {})), [400, 'M_INVALID_PARAM']);
      assert.deepEqual(statusAndErrcode(await get('/account_data/a%00b')), [400, 'M_INVALID_PARAM']);
      assert.deepEqual(statusAndErrcode(await put('/rooms/room/account_data/a', {})), [
        400,
        'M_INVALID_PARAM',
      ]);
      assert.deepEqual(statusAndErrcode(await put('/rooms/!a%00b:test/account_data/a', {})), [
        400,
        'M_INVALID_PARAM',
      ]);
      assert.deepEqual(statusAndErrcode(await put('/account_data/a', { a: 'x'.repeat(1_100_000) })), [
        413,
        'M_TOO_LARGE',
      ]);
    });

    it('account data of a user has at most 10 MiB, except that content may always be replaced by content that is not longer', async () => {
      await start();
      const content = { text: 'x'.repeat(1_000_000) };
      const answers = [];
      for (let index = 0; index < 11; index++)
        answers.push(statusAndErrcode(await put(`/account_data/org.example.x${index}`, content))[0]);
      assert.deepEqual(answers, [...Array(10).fill(200), 413]);
      const tooLong = [413, 'M_TOO_LARGE'];
      assert.deepEqual(statusAndErrcode(await put(`${room}/account_data/org.example.y`, content)), tooLong);
      await accountData.set({ userId: '@alice:test', roomId: undefined, type: 'org.example.z' }, content);
      assert.deepEqual(statusAndErrcode(await put('/account_data/org.example.z', { a: 1 })), [
        200,
        undefined,
      ]);
      assert.equal((await put('/account_data/org.example.x0', {})).status, 200);
      assert.equal((await put('/account_data/org.example.y', content)).status, 200);
    });

    it('the 10 MiB of account data of a user include the names of its types, also those of deleted account data', async () => {
      await start();
      const addDeleted = (from: number, count: number) =>
        server.database.batch([
          {
            sql: 'insert into account_data (user_id, room_id, type, content, position) values (?, ?, ?, ?, ?)',
            rows: Array.from({ length: count }, (_, index) => [
              '@alice:test',
              '',
              `${from + index}`.padEnd(250, 'x'),
              '{}',
              1,
            ]),
          },
        ]);
      await addDeleted(0, 34_000);
      assert.equal((await put('/account_data/a', { a: 1 })).status, 200);
      await addDeleted(34_000, 2_000);
      assert.deepEqual(statusAndErrcode(await put('/account_data/b', { a: 1 })), [413, 'M_TOO_LARGE']);
      assert.equal((await put('/account_data/a', { a: 2 })).status, 200);
    });

    it('account data is published on its stream, and changesSince returns it only when its last change lies between the two positions', async () => {
      await start();
      const facts: unknown[] = [];
      accountData.accountDataStream.subscribe((fact) => facts.push(fact));
      const positionBefore = server.streams.current;
      await put('/account_data/a', { v: 1 });
      const positionBetween = server.streams.current;
      await put(`${room}/account_data/b`, { v: 2 });
      await put('/account_data/a', { v: 3 });
      const positionAfter = server.streams.current;
      const global = { userId: '@alice:test', roomId: undefined, type: 'a' };
      assert.deepEqual(facts, [global, { userId: '@alice:test', roomId: '!room:test', type: 'b' }, global]);
      const roomTypeAndContent = (entries: Awaited<ReturnType<typeof accountData.all>>) =>
        entries.map(({ roomId, type, content }) => [roomId, type, content]);
      const expected = [
        ['!room:test', 'b', { v: 2 }],
        [undefined, 'a', { v: 3 }],
      ];
      assert.deepEqual(
        roomTypeAndContent(await accountData.changesSince('@alice:test', positionBefore, positionAfter)),
        expected,
      );
      assert.deepEqual(
        roomTypeAndContent(await accountData.changesSince('@alice:test', positionBefore, positionBetween)),
        [],
      );
      assert.deepEqual(
        roomTypeAndContent(await accountData.changesSince('@alice:test', positionAfter, positionAfter + 10)),
        [],
      );
      assert.deepEqual(
        roomTypeAndContent(await accountData.changesSince('@bob:test', positionBefore, positionAfter)),
        [],
      );
      assert.deepEqual(roomTypeAndContent(await accountData.all('@alice:test')), expected.toReversed());
    });

    it('a deactivation deletes the account data of the user only with erase: true', async () => {
      await start();
      await put('/account_data/a', { v: 1 });
      await server.slice.accounts.deactivate('@alice:test', { erase: false, byAdmin: false });
      assert.equal((await accountData.all('@alice:test')).length, 1);
      await server.slice.accounts.deactivate('@alice:test', { erase: true, byAdmin: false });
      assert.deepEqual(await accountData.all('@alice:test'), []);
    });
  });

  describe('tags', () => {
    it('tags are set and removed one at a time', async () => {
      await start();
      assert.deepEqual((await get(`${room}/tags`)).body, { tags: {} });
      await put(`${room}/tags/m.favourite`, { order: 0.25 });
      await put(`${room}/tags/u.work`, {});
      const tags = { 'm.favourite': { order: 0.25 }, 'u.work': {} };
      assert.deepEqual((await get(`${room}/tags`)).body, { tags });
      assert.deepEqual((await get(`${room}/account_data/m.tag`)).body, { tags });
      for (let i = 0; i < 2; i++) {
        const answer = await server.call('DELETE', `/user/@alice:test${room}/tags/m.favourite`, { token });
        assert.deepEqual([answer.status, answer.body], [200, {}]);
      }
      assert.deepEqual((await get(`${room}/tags`)).body, { tags: { 'u.work': {} } });
    });

    it('tags of a room have at most 1 MiB together', async () => {
      await start();
      const set = (tag: string) => put(`${room}/tags/${tag}`, { text: 'x'.repeat(60_000) });
      for (let index = 0; index < 17; index++) assert.equal((await set(`u.${index}`)).status, 200);
      assert.deepEqual(statusAndErrcode(await set('u.17')), [413, 'M_TOO_LARGE']);
    });

    it('ten tags that are set concurrently are all stored', async () => {
      await start();
      const names = Array.from({ length: 10 }, (_, i) => `u.${i}`);
      await Promise.all(names.map((name) => put(`${room}/tags/${name}`, {})));
      assert.deepEqual(Object.keys((await get(`${room}/tags`)).body['tags'] as object).sort(), names);
    });

    it('rejects invalid tags and room ids with 400, and reads m.tag account data with invalid content as no tags', async () => {
      await start();
      assert.deepEqual(statusAndErrcode(await put(`${room}/tags/x`, { order: 'first' })), [
        400,
        'M_BAD_JSON',
      ]);
      assert.deepEqual(statusAndErrcode(await put(`${room}/tags/${'x'.repeat(256)}`, {})), [
        400,
        'M_INVALID_PARAM',
      ]);
      assert.deepEqual(statusAndErrcode(await put(`${room}/tags/__proto__`, {})), [400, 'M_INVALID_PARAM']);
      assert.deepEqual(statusAndErrcode(await put('/rooms/room/tags/x', {})), [400, 'M_INVALID_PARAM']);
      await put(`${room}/account_data/m.tag`, { tags: 'nonsense' });
      assert.deepEqual((await get(`${room}/tags`)).body, { tags: {} });
      await put(`${room}/tags/u.x`, {});
      assert.deepEqual((await get(`${room}/tags`)).body, { tags: { 'u.x': {} } });
    });
  });
});
