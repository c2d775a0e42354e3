import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { unhurriedClock } from '../../../test/support/clocks/unhurried-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';
import { readPagesWhileChanging } from '../test/read-pages.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('media of the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    before(async () => {
      server = await startTestServer({ database: kind, clock: unhurriedClock });
      admin = await Administration.open(server);
    });
    after(() => server.stop());

    let users = 0;
    const newUser = () => TestClient.register(server, `user${users++}`);
    const far = 4_000_000_000_000;
    /** @returns the media id */
    const upload = async (user: TestClient, content: string, filename = 'a.txt') => {
      const answer = await server.api('POST', '/_matrix/media/v3/upload', {
        token: user.token,
        body: content,
        query: { filename },
        headers: { 'content-type': 'text/plain' },
      });
      assert.equal(answer.status, 200, answer.raw);
      return String(answer.body['content_uri']).slice('mxc://test/'.length);
    };
    const download = async (user: TestClient, mediaId: string) =>
      (await server.api('GET', `/_matrix/client/v1/media/download/test/${mediaId}`, { token: user.token }))
        .status;
    const listOf = async (user: TestClient, query: Record<string, string | number> = {}) => {
      const body = await admin.do('GET', `/v1/users/${user.id}/media`, undefined, query);
      return body as unknown as {
        media: { media_id: string; [field: string]: unknown }[];
        total: number;
        next_token?: number;
      };
    };
    const idsOf = async (user: TestClient, query: Record<string, string | number> = {}) =>
      (await listOf(user, query)).media.map(({ media_id }) => media_id);

    it('GET /users/{userId}/media lists the uploads of a user in every order and by pages', async () => {
      const user = await newUser();
      const ids = [
        await upload(user, 'first', 'b'),
        await upload(user, 'second one', 'a'),
        await upload(user, '3', 'c'),
      ];
      const [newest] = (await listOf(user)).media;
      const { created_ts, media_id, ...rest } = newest!;
      assert.ok(ids.includes(media_id) && Number(created_ts) > 1e12);
      assert.deepEqual(Object.keys(rest).sort(), [
        'last_access_ts',
        'media_length',
        'media_type',
        'quarantined_by',
        'safe_from_quarantine',
        'upload_name',
      ]);
      assert.deepEqual(await idsOf(user, { order_by: 'upload_name' }), [ids[1], ids[0], ids[2]]);
      assert.deepEqual(await idsOf(user, { order_by: 'media_length', dir: 'b' }), [ids[1], ids[0], ids[2]]);
      for (const order_by of [
        'media_id',
        'upload_name',
        'created_ts',
        'last_access_ts',
        'media_length',
        'media_type',
        'quarantined_by',
        'safe_from_quarantine',
      ]) {
        const paged: string[] = [];
        for (let from = 0; ; ) {
          const page = await listOf(user, { order_by, limit: 2, from });
          assert.equal(page.total, 3);
          paged.push(...page.media.map(({ media_id: id }) => id));
          if (page.next_token === undefined) break;
          from = page.next_token;
        }
        assert.deepEqual(paged, await idsOf(user, { order_by }), order_by);
      }
      await download(user, ids[0]!);
      const read = (await listOf(user, { order_by: 'last_access_ts', dir: 'b' })).media[0]!;
      assert.equal(read.media_id, ids[0]);
      assert.ok(Number(read['last_access_ts']) > 1e12);
    });

    it('GET /users/{userId}/media lists each upload once when other files are uploaded and deleted between two pages', async () => {
      for (const order of [{}, { order_by: 'media_id' }, { order_by: 'upload_name', dir: 'b' }]) {
        const user = await newUser();
        let passing = await upload(user, 'passing', 'c');
        const permanent: string[] = [];
        for (const name of ['b', 'a', 'e', 'd', 'g', 'f']) permanent.push(await upload(user, name, name));
        const expected = (await idsOf(user, order)).filter((id) => id !== passing);
        const keys = await readPagesWhileChanging(
          async (from = 0) => {
            const page = await listOf(user, { ...order, limit: 2, from });
            return { keys: page.media.map(({ media_id: id }) => id), next: page.next_token };
          },
          async (soFar) => {
            await admin.do('DELETE', `/v1/media/test/${passing}`);
            passing = await upload(user, 'passing', soFar.length < 4 ? 'a' : 'h');
          },
        );
        assert.equal(expected.length, permanent.length);
        assert.deepEqual(
          keys.filter((id) => permanent.includes(id)),
          expected,
          JSON.stringify(order),
        );
      }
    });

    it('GET /statistics/users/media lists each user once when users upload their first file or lose their last one between two pages', async () => {
      for (const order of [{}, { order_by: 'media_length', dir: 'b' }, { order_by: 'media_count' }]) {
        const term = `paged${users}`;
        const named = async () => {
          const user = await newUser();
          await admin.do('PUT', `/v2/users/${user.id}`, { displayname: term });
          return user;
        };
        const permanent: string[] = [];
        const [early, late] = [await named(), await named()];
        let passing = await upload(early, 'x');
        for (const content of ['1', '22', '333', '4444', '55555', '666666']) {
          const user = await named();
          await upload(user, content);
          permanent.push(user.id);
        }
        const page = async (query: Record<string, string | number>) => {
          const body = await admin.do('GET', '/v1/statistics/users/media', undefined, {
            ...{ search_term: term, ...order },
            ...query,
          });
          const rows = body['users'] as { user_id: string }[];
          const next = body['next_token'] as number | undefined;
          return { keys: rows.map(({ user_id: userId }) => userId), next };
        };
        const expected = (await page({})).keys.filter((userId) => userId !== early.id);
        const keys = await readPagesWhileChanging(
          (from = 0) => page({ limit: 2, from }),
          async (soFar) => {
            await admin.do('DELETE', `/v1/media/test/${passing}`);
            passing = await upload(soFar.length < 4 ? late : early, 'x'.repeat(9 - soFar.length));
          },
        );
        assert.equal(expected.length, permanent.length);
        assert.deepEqual(
          keys.filter((userId) => permanent.includes(userId)),
          expected,
          JSON.stringify(order),
        );
      }
    });

    it('quarantines a file with all files of the same content, also later ones, and releases it', async () => {
      const user = await newUser();
      const [bad, same, other] = [
        await upload(user, 'bad content'),
        await upload(user, 'bad content'),
        await upload(user, 'good content'),
      ];
      assert.deepEqual(await admin.do('POST', `/v1/media/quarantine/test/${bad}`), {});
      const later = await upload(user, 'bad content');
      const statuses = [bad, same, later, other].map((id) => download(user, id));
      assert.deepEqual(await Promise.all(statuses), [404, 404, 404, 200]);
      const { media_info } = await admin.do('GET', `/v1/media/test/${bad}`);
      const info = media_info as Record<string, unknown>;
      assert.deepEqual(
        [info['media_origin'], info['user_id'], info['media_length'], info['quarantined_by']],
        ['test', user.id, 11, '@admin:test'],
      );
      const changes = async (from: number) =>
        (await admin.do('GET', '/v1/media/quarantine_changes', undefined, { from })) as unknown as {
          next_batch: number;
          changes: { origin: string; media_id: string; quarantined: boolean }[];
        };
      const pairs = async (from = 0) =>
        (await changes(from)).changes.map(({ media_id, quarantined }) => [media_id, quarantined]);
      const quarantined = await changes(0);
      assert.deepEqual(
        (await pairs()).slice(0, 2).sort(),
        [
          [bad, true],
          [same, true],
        ].sort(),
      );
      await admin.do('POST', `/v1/media/unquarantine/test/${bad}`);
      assert.deepEqual([await download(user, bad), await download(user, same)], [200, 404]);
      await admin.do('POST', `/v1/media/unquarantine/test/${bad}`);
      assert.deepEqual(await pairs(quarantined.next_batch), [[bad, false]]);
      // The list has the last change of each file only, so that it does not grow with each change.
      const all = await changes(0);
      const found = await pairs();
      assert.deepEqual(
        found.filter(([id]) => id === bad),
        [[bad, false]],
      );
      assert.deepEqual(found.at(-1), [bad, false]);
      assert.equal(found.filter(([, isQuarantined]) => !isQuarantined).length, 1);
      assert.deepEqual(await changes(all.next_batch), { next_batch: all.next_batch, changes: [] });
      assert.deepEqual(await admin.refused('GET', '/v1/media/test/unknown'), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await admin.refused('GET', `/v1/media/test/${enc('a\0')}`), [404, 'M_NOT_FOUND']);
    });

    it('lets administrators download a quarantined file with admin_unsafely_bypass_quarantine, and lists these downloads in the audit log', async () => {
      const user = await newUser();
      const mediaId = await upload(user, 'evidence');
      await admin.do('POST', `/v1/media/quarantine/test/${mediaId}`);
      const bypass = async (token: string, value = 'true', rest = '') => {
        const path = `/_matrix/client/v1/media/download/test/${mediaId}${rest}`;
        const query = { admin_unsafely_bypass_quarantine: value };
        const { status, body, raw } = await server.api('GET', path, { token, query });
        return [status, status === 200 ? raw : body['errcode']];
      };
      const { token } = admin.admin;
      assert.deepEqual(await bypass(token), [200, 'evidence']);
      assert.deepEqual(await bypass(token, 'true', '/named.txt'), [200, 'evidence']);
      assert.deepEqual(await bypass(token, 'false'), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await bypass(user.token), [403, 'M_FORBIDDEN']);
      assert.equal(await download(user, mediaId), 404);
      assert.equal(await download(admin.admin, mediaId), 404);
      const entries = async (operation: string) => {
        const log = await admin.do('GET', '/v1/audit_log', undefined, { operation });
        return (log['entries'] as Record<string, unknown>[]).map((entry) => [
          entry['admin'],
          entry['target'],
          entry['status'],
        ]);
      };
      assert.deepEqual(await entries('getContentAuthed'), [
        [user.id, `test ${mediaId}`, 403],
        ['@admin:test', `test ${mediaId}`, 200],
      ]);
      assert.deepEqual(await entries('getContentOverrideNameAuthed'), [
        ['@admin:test', `test ${mediaId} named.txt`, 200],
      ]);
    });

    it('quarantines the media of a user and of a room, and leaves protected media readable', async () => {
      const user = await newUser();
      const [firstId, secondId, protectedId] = [
        await upload(user, 'one'),
        await upload(user, 'two'),
        await upload(user, 'safe'),
      ];
      await admin.do('POST', `/v1/media/protect/${protectedId}`);
      const quarantined = await admin.do('POST', `/v1/user/${user.id}/media/quarantine`);
      assert.deepEqual(quarantined, { num_quarantined: 2 });
      const statuses = [firstId, secondId, protectedId].map((id) => download(user, id));
      assert.deepEqual(await Promise.all(statuses), [404, 404, 200]);
      await admin.do('POST', `/v1/media/unprotect/${protectedId}`);
      assert.deepEqual(await admin.refused('POST', '/v1/media/protect/unknown'), [404, 'M_NOT_FOUND']);

      const roomId = await user.createRoom();
      const thumbnail = await upload(user, 'thumbnail');
      await user.send(roomId, 'm.room.message', {
        msgtype: 'm.image',
        body: 'x',
        url: `mxc://test/${protectedId}`,
        info: { thumbnail_url: `mxc://test/${thumbnail}` },
      });
      await user.send(roomId, 'm.room.message', { msgtype: 'm.image', body: 'x', url: 'mxc://remote/abc' });
      const found = await admin.do('GET', `/v1/room/${enc(roomId)}/media`);
      assert.deepEqual(
        (found['local'] as string[]).toSorted(),
        [`mxc://test/${protectedId}`, `mxc://test/${thumbnail}`].toSorted(),
      );
      assert.deepEqual(found['remote'], ['mxc://remote/abc']);
      const inRoom = await admin.do('POST', `/v1/room/${enc(roomId)}/media/quarantine`);
      assert.deepEqual(inRoom, { num_quarantined: 2 });
      assert.deepEqual([await download(user, protectedId), await download(user, thumbnail)], [404, 404]);
    });

    it('deletes media by its id, and the newest or largest of a user', async () => {
      const user = await newUser();
      const ids = [await upload(user, '1'), await upload(user, '22'), await upload(user, '333')];
      assert.deepEqual(await admin.do('DELETE', `/v1/media/test/${ids[0]}`), {
        deleted_media: [ids[0]],
        total: 1,
      });
      assert.deepEqual(await admin.refused('DELETE', `/v1/media/test/${ids[0]}`), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await admin.refused('DELETE', '/v1/media/elsewhere/abc'), [400, 'M_INVALID_PARAM']);
      assert.equal(await download(user, ids[0]!), 404);
      const largest = await admin.do('DELETE', `/v1/users/${user.id}/media`, undefined, {
        order_by: 'media_length',
        dir: 'b',
        limit: 1,
      });
      assert.deepEqual(largest, { deleted_media: [ids[2]], total: 1 });
      assert.deepEqual(await idsOf(user), [ids[1]]);
    });

    it('deletes large media that was last used before a time, except avatars and protected media', async () => {
      const user = await newUser();
      const [avatar, large, small, safe] = [
        await upload(user, 'the large avatar'),
        await upload(user, 'the large file'),
        await upload(user, 'small'),
        await upload(user, 'the large protected file'),
      ];
      await user.do('PUT', `/profile/${user.id}/avatar_url`, { avatar_url: `mxc://test/${avatar}` });
      await admin.do('POST', `/v1/media/protect/${safe}`);
      assert.deepEqual(await admin.refused('POST', '/v1/media/delete', {}, { before_ts: 5 }), [
        400,
        'M_INVALID_PARAM',
      ]);
      const early = await admin.do('POST', '/v1/media/delete', {}, { before_ts: 1_500_000_000_000 });
      assert.deepEqual(early, { deleted_media: [], total: 0 });
      const query = { before_ts: far, size_gt: 10 };
      const mediaIdsOfUser = async () => (await idsOf(user)).toSorted();
      await admin.do('POST', '/v1/media/test/delete', {}, query);
      assert.deepEqual(await mediaIdsOfUser(), [avatar, small, safe].toSorted());
      await admin.do('POST', '/v1/media/delete', {}, { ...query, keep_profiles: false });
      assert.deepEqual(await mediaIdsOfUser(), [small, safe].toSorted());
      assert.equal(await download(user, large), 404);
    });

    it('GET /media/download/{serverName}/{mediaId} returns a file that browsers save and do not cache, and a quarantined file only if the query allows it', async () => {
      const user = await newUser();
      const mediaId = await upload(user, '<script>alert(1)</script>', 'page.html');
      const read = async (media: string, query = '', token = admin.admin.token) => {
        const url = `${server.baseUrl}/_synapse/admin/v1/media/download/${media}${query}`;
        const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
        return { status: response.status, headers: response.headers, text: await response.text() };
      };
      const download = await read(`test/${mediaId}`);
      assert.deepEqual([download.status, download.text], [200, '<script>alert(1)</script>']);
      const expected: Readonly<Record<string, string>> = {
        'content-type': 'text/plain',
        'content-disposition': 'attachment; filename=page.html',
        'content-security-policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
        'cross-origin-resource-policy': 'same-origin',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cache-control': 'no-store',
      };
      for (const [name, value] of Object.entries(expected))
        assert.equal(download.headers.get(name), value, name);
      const bypass = '?admin_unsafely_bypass_quarantine=true';
      await admin.do('POST', `/v1/media/quarantine/test/${mediaId}`);
      assert.equal((await read(`test/${mediaId}`)).status, 404);
      assert.equal((await read(`test/${mediaId}`, bypass)).text, '<script>alert(1)</script>');
      assert.equal((await read(`test/${mediaId}`, bypass, user.token)).status, 403);
      assert.equal((await read('test/unknown')).status, 404);
      assert.equal((await read('elsewhere.test/unknown')).status, 404, 'no copy of remote media is fetched');
      const { entries } = await admin.do('GET', '/v1/audit_log', undefined, {
        operation: 'downloadMedia',
        target: `test ${mediaId}`,
      });
      const statuses = (entries as { status: number }[]).map(({ status }) => status);
      assert.deepEqual(new Set(statuses), new Set([200, 404, 403]));
    });

    it('a download by an administrator does not change last_access_ts of the file', async () => {
      const user = await newUser();
      const inspected = await upload(user, 'inspected');
      const inspect = async (path: string, query = {}) => {
        const answer = await admin.admin.ask('GET', `${path}/test/${inspected}`, undefined, query);
        assert.equal(answer.status, 200, answer.raw);
      };
      const bypass = { admin_unsafely_bypass_quarantine: 'true' };
      await inspect('/_synapse/admin/v1/media/download');
      await inspect('/_synapse/admin/v1/media/download', bypass);
      await inspect('/_matrix/client/v1/media/download', bypass);
      // Times of downloads are written together: once the last one is stored, the earlier ones are, too.
      const used = await upload(user, 'used');
      assert.equal(await download(user, used), 200);
      const lastUses = async () =>
        Object.fromEntries(
          (await listOf(user)).media.map((media) => [media.media_id, media['last_access_ts']]),
        );
      assert.ok(Number((await lastUses())[used]) > 1e12);
      assert.equal((await lastUses())[inspected], null);
    });

    it('POST /purge_media_cache deletes cached remote media, and requires before_ts', async () => {
      assert.deepEqual(await admin.do('POST', '/v1/purge_media_cache', {}, { before_ts: far }), {
        deleted: 0,
      });
      assert.deepEqual(await admin.refused('POST', '/v1/purge_media_cache', {}), [400, 'M_MISSING_PARAM']);
    });

    it('GET /statistics/users/media counts the uploads of each user, with filters, orders and pages', async () => {
      const [few, many] = [await newUser(), await newUser()];
      await upload(few, '0123456789');
      for (const content of ['a', 'b', 'c']) await upload(many, content);
      await admin.do('PUT', `/v2/users/${few.id}`, { displayname: 'Statistician' });
      await admin.do('PUT', `/v2/users/${many.id}`, { displayname: 'Statistics' });
      const usage = async (query: Record<string, string | number> = {}) =>
        (await admin.do('GET', '/v1/statistics/users/media', undefined, {
          search_term: 'statisti',
          ...query,
        })) as unknown as { users: { user_id: string }[]; total: number; next_token?: number };
      assert.deepEqual(await usage(), {
        users: [
          { user_id: few.id, displayname: 'Statistician', media_count: 1, media_length: 10 },
          { user_id: many.id, displayname: 'Statistics', media_count: 3, media_length: 3 },
        ],
        total: 2,
      });
      for (const order_by of ['user_id', 'displayname', 'media_length', 'media_count']) {
        const [first, second] = [
          await usage({ order_by, limit: 1 }),
          await usage({ order_by, limit: 1, from: 1 }),
        ];
        assert.equal(first.next_token, 1);
        assert.deepEqual([...first.users, ...second.users], (await usage({ order_by })).users, order_by);
      }
      assert.equal((await usage({ order_by: 'media_length' })).users[0]!.user_id, many.id);
      const statistics = async (query: Record<string, string | number>) =>
        (await admin.do('GET', '/v1/statistics/users/media', undefined, query)) as unknown as {
          users: { user_id: string }[];
          total: number;
          next_token?: number;
        };
      for (const order_by of ['user_id', 'displayname', 'media_length', 'media_count']) {
        for (const dir of ['f', 'b']) {
          const whole = await statistics({ order_by, dir });
          assert.equal(whole.total, whole.users.length);
          assert.ok(whole.total > 3);
          const paged: unknown[] = [];
          for (let from: number | undefined = 0; from !== undefined; ) {
            const page: Awaited<ReturnType<typeof statistics>> = await statistics({
              order_by,
              dir,
              limit: 2,
              from,
            });
            assert.equal(page.total, whole.total);
            paged.push(...page.users);
            from = page.next_token;
          }
          assert.deepEqual(paged, whole.users, `${order_by} ${dir}`);
        }
      }
      assert.equal((await usage({ from_ts: far })).total, 0);
      const refused = await admin.refused('GET', '/v1/statistics/users/media', undefined, {
        from_ts: 5,
        until_ts: 4,
      });
      assert.deepEqual(refused, [400, 'M_INVALID_PARAM']);
    });

    it('POST /quarantine_media/{roomId} quarantines the media of a room, for administrators only', async () => {
      const user = await newUser();
      const mediaId = await upload(user, 'in a room');
      const roomId = await user.createRoom();
      const url = `mxc://test/${mediaId}`;
      await user.send(roomId, 'm.room.message', { msgtype: 'm.image', body: 'x', url });
      const path = `/v1/quarantine_media/${enc(roomId)}`;
      const refused = await user.ask('POST', `/_synapse/admin${path}`, {});
      assert.deepEqual([refused.status, refused.body['errcode']], [403, 'M_FORBIDDEN']);
      assert.equal(await download(user, mediaId), 200);
      assert.deepEqual(await admin.do('POST', path), { num_quarantined: 1 });
      assert.equal(await download(user, mediaId), 404);
      for (const unknown of ['!unknown:test', 'x'])
        assert.deepEqual(
          await admin.refused('POST', `/v1/quarantine_media/${enc(unknown)}`),
          await admin.refused('POST', `/v1/room/${enc(unknown)}/media/quarantine`),
        );
    });
  });
});
