import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { unhurriedClock } from '../../../test/support/clocks/unhurried-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { Administration } from '../test/administration.ts';
import { mediaCalls } from '../test/media-calls.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('media of the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    before(async () => {
      server = await startTestServer({ database: kind, clock: unhurriedClock });
      admin = await Administration.open(server);
    });
    after(() => server.stop());
    const { newUser, upload, download, listOf, idsOf } = mediaCalls(() => ({ server, admin }));
    const far = 4_000_000_000_000;

    it('deletes media by its id, and the largest file of a user', async () => {
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
        const answer = await admin.admin.request('GET', `${path}/test/${inspected}`, undefined, query);
        assert.equal(answer.status, 200, answer.raw);
      };
      const bypass = { admin_unsafely_bypass_quarantine: 'true' };
      await inspect('/_synapse/admin/v1/media/download');
      await inspect('/_synapse/admin/v1/media/download', bypass);
      await inspect('/_matrix/client/v1/media/download', bypass);
      // Times of downloads are written together: when the time of the last download is stored, the earlier times are, too.
      const used = await upload(user, 'used');
      assert.equal(await download(user, used), 200);
      const lastUses = async () =>
        Object.fromEntries(
          (await listOf(user)).media.map((media) => [media.media_id, media['last_access_ts']]),
        );
      assert.ok(Number((await lastUses())[used]) > 1e12);
      assert.equal((await lastUses())[inspected], null);
    });

    it('POST /purge_media_cache responds deleted: 0 when no remote media is cached, and 400 M_MISSING_PARAM without before_ts', async () => {
      assert.deepEqual(await admin.do('POST', '/v1/purge_media_cache', {}, { before_ts: far }), {
        deleted: 0,
      });
      assert.deepEqual(await admin.refused('POST', '/v1/purge_media_cache', {}), [400, 'M_MISSING_PARAM']);
    });
  });
});
