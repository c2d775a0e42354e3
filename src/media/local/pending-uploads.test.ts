import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import type { TestServer, TestUser } from '../../../test/support/servers/server.ts';
import { download, mediaOf, mediaServersForTests, statusAndErrcode } from '../test/media-servers.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`POST /media/v1/create on ${database}`, () => {
    const { start, stopAll } = mediaServersForTests(database);
    afterEach(stopAll);
    const create = (server: TestServer, { token }: TestUser) =>
      server.api('POST', '/_matrix/media/v1/create', { token });
    const put = (server: TestServer, { token }: TestUser, media: string, body: unknown) =>
      server.api('PUT', `/_matrix/media/v3/upload/${media}`, {
        token,
        body,
        headers: { 'content-type': 'text/plain' },
      });

    it('lets downloads wait for a pending upload for timeout_ms, and then answers 504 M_NOT_YET_UPLOADED', async () => {
      const { server, user: anna } = await start();
      const media = mediaOf((await create(server, anna)).body);
      const withoutWaiting = download(server, anna, `${media}?timeout_ms=0`);
      assert.equal(await statusAndErrcode(await withoutWaiting), '504 M_NOT_YET_UPLOADED');
      const afterTimeout = download(server, anna, `${media}?timeout_ms=50`);
      assert.equal(await statusAndErrcode(await afterTimeout), '504 M_NOT_YET_UPLOADED');
      assert.equal((await put(server, anna, media, 'there')).status, 200);
      const response = await download(server, anna, media);
      assert.deepEqual([response.status, await response.text()], [200, 'there']);
    });

    it('answers waiting downloads when the upload arrives', async () => {
      const { server, user: anna } = await start();
      const media = mediaOf((await create(server, anna)).body);
      const waiting = download(server, anna, media);
      assert.equal((await put(server, anna, media, 'there')).status, 200);
      assert.equal(await (await waiting).text(), 'there');
    });

    it('accepts one upload to a media id, and only from its creator', async () => {
      const { server, user: anna } = await start();
      const ben = await server.register('ben');
      const media = mediaOf((await create(server, anna)).body);
      const resultOf = async (answer: ReturnType<typeof put>) => {
        const { status, body } = await answer;
        return `${status} ${body['errcode']}`;
      };
      assert.equal(await resultOf(put(server, ben, media, 'x')), '403 M_FORBIDDEN');
      const answers = await Promise.all([put(server, anna, media, 'one'), put(server, anna, media, 'two')]);
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409]);
      const winner = answers[0].status === 200 ? 'one' : 'two';
      assert.equal(await (await download(server, anna, media)).text(), winner);
      assert.equal(await resultOf(put(server, anna, media, 'x')), '409 M_CANNOT_OVERWRITE_MEDIA');
      assert.equal(await resultOf(put(server, anna, 'test/unknown', 'x')), '404 M_NOT_FOUND');
      assert.equal(
        await resultOf(put(server, anna, media.replace('test/', 'other.test/'), 'x')),
        '404 M_NOT_FOUND',
      );
    });

    it('lets media ids without an upload expire [option: unused_expiration_time]', async () => {
      const { server, clock, user: anna } = await start({ unused_expiration_time: 60_000 });
      const startedAt = clock.now();
      const created = await create(server, anna);
      const expiresAt = created.body['unused_expires_at'] as number;
      assert.ok(expiresAt >= startedAt + 60_000 && expiresAt <= clock.now() + 60_000);
      const media = mediaOf(created.body);
      clock.advance(60_000);
      assert.equal((await put(server, anna, media, 'x')).status, 404);
      assert.equal(await statusAndErrcode(await download(server, anna, media)), '404 M_NOT_FOUND');
    });

    it('answers 429 M_LIMIT_EXCEEDED when a user has too many pending uploads [option: max_pending_media_uploads]', async () => {
      const {
        server,
        clock,
        user: anna,
      } = await start({
        max_pending_media_uploads: 2,
        unused_expiration_time: 60_000,
      });
      const first = mediaOf((await create(server, anna)).body);
      clock.advance(10_000);
      await create(server, anna);
      const refused = await create(server, anna);
      assert.deepEqual([refused.status, refused.body['errcode']], [429, 'M_LIMIT_EXCEEDED']);
      assert.ok((refused.body['retry_after_ms'] as number) <= 50_000, 'until the first expires');
      await put(server, anna, first, 'x');
      assert.equal((await create(server, anna)).status, 200);
      assert.equal((await create(server, anna)).status, 429);
      clock.advance(60_000);
      assert.equal((await create(server, anna)).status, 200);
    });

    it('limits the pending uploads of a user also when their media ids are created at the same time', async () => {
      const { server, user: anna } = await start({ max_pending_media_uploads: 3 });
      const created = await Promise.all(Array.from({ length: 20 }, () => create(server, anna)));
      assert.equal(created.filter(({ status }) => status === 200).length, 3);
    });

    it('answers 429 M_LIMIT_EXCEEDED when media ids are created too fast [option: rc_media_create]', async () => {
      const {
        server,
        clock,
        user: anna,
      } = await start({}, { rateLimits: { rc_media_create: { per_second: 0.001, burst_count: 1 } } });
      assert.equal((await create(server, anna)).status, 200);
      assert.equal((await create(server, anna)).body['errcode'], 'M_LIMIT_EXCEEDED');
      clock.advance(1_000_000);
      assert.equal((await create(server, anna)).status, 200);
    });
  });
}
