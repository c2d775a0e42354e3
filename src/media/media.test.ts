import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { eventually } from '../../test/clients/eventually.ts';
import { selectedDatabases } from '../../test/support/databases/databases.ts';
import { filesBelow } from '../../test/support/files/stored-files.ts';
import {
  type ConfigurationOverrides,
  startTestServer,
  type TestServer,
  type TestUser,
} from '../../test/support/servers/server.ts';
import { systemClock } from '../kernel/clock.ts';

const html = '<script>alert(1)</script>';
type MediaOptions = NonNullable<ConfigurationOverrides['media']>;

for (const database of selectedDatabases(import.meta.url)) {
  describe(`media repository on ${database}`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-media-'));
    const running: TestServer[] = [];
    after(() => rmSync(folder, { recursive: true, force: true }));

    const start = async (media: MediaOptions = {}, otherConfig: ConfigurationOverrides = {}) => {
      const clock = shiftedClock();
      const media_store_path = mkdtempSync(join(folder, 'store-'));
      const config = { ...otherConfig, media: { media_store_path, ...media } };
      const server = await startTestServer({ database, clock, config });
      running.push(server);
      const user = await server.register('anna');
      return { server, clock, store: media_store_path, user };
    };
    const stopAll = async () => {
      for (const server of running.splice(0)) await server.stop();
    };

    const upload = async (server: TestServer, { token }: TestUser, body: unknown, options: Upload = {}) => {
      const headers = { 'content-type': options.type ?? 'image/png' };
      const query = options.name === undefined ? {} : { filename: options.name };
      return server.api('POST', '/_matrix/media/v3/upload', { token, body, headers, query });
    };
    const uploadedMedia = async (server: TestServer, user: TestUser, body: unknown, options: Upload = {}) => {
      const { status, body: answer } = await upload(server, user, body, options);
      assert.equal(status, 200, JSON.stringify(answer));
      return (answer['content_uri'] as string).slice('mxc://'.length);
    };
    /** Reads the whole body, so that no request is open when the server stops. */
    const get = async (server: TestServer, path: string, user?: TestUser, method = 'GET') => {
      const headers: Record<string, string> = user ? { authorization: `Bearer ${user.token}` } : {};
      const response = await fetch(server.baseUrl + path, { method, headers });
      const body = await response.arrayBuffer();
      return new Response(body, response);
    };
    const download = (server: TestServer, user: TestUser, media: string) =>
      get(server, `/_matrix/client/v1/media/download/${media}`, user);
    const codeOf = async (response: Response) =>
      `${response.status} ${((await response.json()) as { errcode: string }).errcode}`;

    describe('uploads and downloads', () => {
      let server: TestServer;
      let anna: TestUser;
      let store: string;
      before(async () => {
        ({ server, user: anna, store } = await start());
      });
      after(stopAll);

      it('serves uploads unchanged to logged-in users [option: media_store_path]', async () => {
        const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 251));
        const media = await uploadedMedia(server, anna, bytes, { name: 'Kätzchen.png' });
        assert.match(media, /^test\/[A-Za-z]{24}$/);
        const response = await download(server, anna, media);
        assert.equal(response.status, 200);
        assert.deepEqual(Buffer.from(await response.arrayBuffer()), bytes);
        const header = (name: string) => response.headers.get(name);
        assert.equal(header('content-type'), 'image/png');
        assert.equal(header('content-length'), '300000');
        assert.equal(header('content-disposition'), "inline; filename*=utf-8''K%C3%A4tzchen.png");
        assert.match(header('content-security-policy')!, /^sandbox; default-src 'none';/);
        assert.equal(header('cross-origin-resource-policy'), 'cross-origin');
        assert.equal(header('access-control-allow-origin'), '*');
        assert.equal(header('x-content-type-options'), 'nosniff');
        assert.match(header('cache-control')!, /^private/);
        const renamed = await download(server, anna, `${media}/other%2Fname.png`);
        assert.equal(renamed.headers.get('content-disposition'), 'inline; filename="other/name.png"');
        const head = await get(server, `/_matrix/client/v1/media/download/${media}`, anna, 'HEAD');
        assert.deepEqual([head.status, head.headers.get('content-length')], [200, '300000']);
        assert.equal(filesBelow(store).length, 1);
      });

      it('requires an access token for uploads and downloads', async () => {
        const media = await uploadedMedia(server, anna, 'x');
        assert.equal(
          await codeOf(await get(server, `/_matrix/client/v1/media/download/${media}`)),
          '401 M_MISSING_TOKEN',
        );
        const { status } = await server.api('POST', '/_matrix/media/v3/upload', { body: 'x' });
        assert.equal(status, 401);
      });

      it('serves content that browsers could execute as an attachment', async () => {
        for (const type of ['text/html', 'image/svg+xml', 'nonsense']) {
          const media = await uploadedMedia(server, anna, html, { type });
          const { headers } = await download(server, anna, media);
          assert.equal(headers.get('content-disposition'), 'attachment');
          assert.equal(headers.get('content-type'), type === 'nonsense' ? 'application/octet-stream' : type);
        }
      });

      it('rejects invalid media ids with 404 M_NOT_FOUND', async () => {
        const secret = '..%2F..%2F..%2F..%2Fetc%2Fpasswd';
        for (const media of [
          'test/unknown',
          `test/${secret}`,
          `..%2F..%2Fetc/passwd`,
          'test/%00',
          'test/.',
          'a_b/x',
        ]) {
          assert.equal(await codeOf(await download(server, anna, media)), '404 M_NOT_FOUND', media);
        }
      });

      it('deletes the file of an aborted upload', async () => {
        const before = filesBelow(store).length;
        const url = new URL(`${server.baseUrl}/_matrix/media/v3/upload`);
        const headers = { authorization: `Bearer ${anna.token}`, 'content-length': 1_000_000 };
        const broken = request(url, { method: 'POST', headers });
        broken.on('error', () => undefined);
        broken.write(Buffer.alloc(200_000));
        await eventually('the upload to begin', async () => filesBelow(store).length === before + 1);
        broken.destroy();
        await eventually('the upload to be forgotten', async () => filesBelow(store).length === before);
      });

      it('rejects an upload with an invalid file name with 400 M_INVALID_PARAM', async () => {
        const { status, body } = await upload(server, anna, 'x', { name: 'x'.repeat(3_000) });
        assert.deepEqual([status, body['errcode']], [400, 'M_INVALID_PARAM']);
      });

      it('serves uploads after a restart', async () => {
        const media = await uploadedMedia(server, anna, 'for ever', { type: 'text/plain' });
        await server.restart();
        assert.equal(await (await download(server, anna, media)).text(), 'for ever');
      });

      it('answers 404 M_NOT_FOUND when the file is missing on disk', async () => {
        const media = await uploadedMedia(server, anna, 'x');
        rmSync(join(store, 'local'), { recursive: true });
        assert.equal(await codeOf(await download(server, anna, media)), '404 M_NOT_FOUND');
        assert.equal(
          await (await download(server, anna, await uploadedMedia(server, anna, 'y'))).text(),
          'y',
        );
      });
    });

    describe('POST /media/v1/create', () => {
      afterEach(stopAll);
      const create = (server: TestServer, { token }: TestUser) =>
        server.api('POST', '/_matrix/media/v1/create', { token });
      const mediaOf = ({ body }: { body: Record<string, unknown> }) =>
        (body['content_uri'] as string).slice('mxc://'.length);
      const put = (server: TestServer, { token }: TestUser, media: string, body: unknown) =>
        server.api('PUT', `/_matrix/media/v3/upload/${media}`, {
          token,
          body,
          headers: { 'content-type': 'text/plain' },
        });

      it('lets downloads wait for a pending upload until timeout_ms', async () => {
        const { server, user: anna } = await start();
        const media = mediaOf(await create(server, anna));
        const withoutWaiting = download(server, anna, `${media}?timeout_ms=0`);
        assert.equal(await codeOf(await withoutWaiting), '504 M_NOT_YET_UPLOADED');
        const afterTimeout = download(server, anna, `${media}?timeout_ms=50`);
        assert.equal(await codeOf(await afterTimeout), '504 M_NOT_YET_UPLOADED');
        assert.equal((await put(server, anna, media, 'there')).status, 200);
        const response = await download(server, anna, media);
        assert.deepEqual([response.status, await response.text()], [200, 'there']);
      });

      it('answers waiting downloads when the upload arrives', async () => {
        const { server, user: anna } = await start();
        const media = mediaOf(await create(server, anna));
        const waiting = download(server, anna, media);
        assert.equal((await put(server, anna, media, 'there')).status, 200);
        assert.equal(await (await waiting).text(), 'there');
      });

      it('accepts one upload, from the creator of the media id only', async () => {
        const { server, user: anna } = await start();
        const ben = await server.register('ben');
        const media = mediaOf(await create(server, anna));
        const code = async (answer: ReturnType<typeof put>) => {
          const { status, body } = await answer;
          return `${status} ${body['errcode']}`;
        };
        assert.equal(await code(put(server, ben, media, 'x')), '403 M_FORBIDDEN');
        const answers = await Promise.all([put(server, anna, media, 'one'), put(server, anna, media, 'two')]);
        assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409]);
        const winner = answers[0].status === 200 ? 'one' : 'two';
        assert.equal(await (await download(server, anna, media)).text(), winner);
        assert.equal(await code(put(server, anna, media, 'x')), '409 M_CANNOT_OVERWRITE_MEDIA');
        assert.equal(await code(put(server, anna, 'test/unknown', 'x')), '404 M_NOT_FOUND');
        assert.equal(
          await code(put(server, anna, media.replace('test/', 'other.test/'), 'x')),
          '404 M_NOT_FOUND',
        );
      });

      it('lets media ids without an upload expire [option: unused_expiration_time]', async () => {
        const { server, clock, user: anna } = await start({ unused_expiration_time: 60_000 });
        const startedAt = clock.now();
        const created = await create(server, anna);
        const expiresAt = created.body['unused_expires_at'] as number;
        assert.ok(expiresAt >= startedAt + 60_000 && expiresAt <= clock.now() + 60_000);
        const media = mediaOf(created);
        clock.advance(60_000);
        assert.equal((await put(server, anna, media, 'x')).status, 404);
        assert.equal(await codeOf(await download(server, anna, media)), '404 M_NOT_FOUND');
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
        const first = mediaOf(await create(server, anna));
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

      it('counts pending uploads whose media ids are created at the same time', async () => {
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

    describe('limits of uploads', () => {
      afterEach(stopAll);

      it('rejects uploads that are too large with 413 M_TOO_LARGE [option: max_upload_size]', async () => {
        const { server, store, user: anna } = await start({ max_upload_size: 1_000 });
        for (const path of ['/_matrix/media/v3/config', '/_matrix/client/v1/media/config']) {
          const { body } = await server.api('GET', path, { token: anna.token });
          assert.deepEqual(body, { 'm.upload.size': 1_000 });
        }
        await uploadedMedia(server, anna, 'x'.repeat(1_000));
        const refused = await upload(server, anna, 'x'.repeat(1_001));
        assert.deepEqual([refused.status, refused.body['errcode']], [413, 'M_TOO_LARGE']);
        // Without a content-length header.
        const response = await fetch(`${server.baseUrl}/_matrix/media/v3/upload`, {
          method: 'POST',
          headers: { authorization: `Bearer ${anna.token}` },
          body: new Blob(['x'.repeat(900), 'y'.repeat(900)]).stream(),
          duplex: 'half',
        } as RequestInit);
        assert.equal(await codeOf(response), '413 M_TOO_LARGE');
        assert.equal(filesBelow(store).length, 1);
      });

      it('rejects uploads beyond the quota with 403 M_FORBIDDEN [option: media_upload_limits[].time_period] [option: media_upload_limits[].max_size]', async () => {
        const {
          server,
          clock,
          store,
          user: anna,
        } = await start({
          media_upload_limits: [
            { time_period: 60_000, max_size: 100 },
            { time_period: 600_000, max_size: 150 },
          ],
        });
        const ben = await server.register('ben');
        const codes = async (size: number, user = anna) => {
          const { status, body } = await upload(server, user, 'x'.repeat(size));
          return status === 200 ? 'taken' : `${status} ${body['errcode']}`;
        };
        assert.equal(await codes(101), '403 M_FORBIDDEN');
        assert.equal(await codes(60), 'taken');
        assert.equal(await codes(41), '403 M_FORBIDDEN');
        assert.equal(await codes(100, ben), 'taken');
        clock.advance(60_000);
        assert.equal(await codes(90), 'taken');
        clock.advance(60_000);
        assert.equal(await codes(1), '403 M_FORBIDDEN', 'the longer period counts both uploads');
        clock.advance(480_000);
        assert.equal(await codes(60), 'taken');
        assert.equal(filesBelow(store).length, 4);
      });
    });

    describe('unauthenticated media endpoints', () => {
      afterEach(stopAll);
      const downloadUnauthenticated = (server: TestServer, media: string, version = 'v3') =>
        get(server, `/_matrix/media/${version}/download/${media}`);

      it('unauthenticated endpoints serve media that was stored before authentication was required [option: enable_authenticated_media]', async () => {
        const media_store_path = mkdtempSync(join(folder, 'store-'));
        const { server, user: anna } = await start({ enable_authenticated_media: false, media_store_path });
        const media = await uploadedMedia(server, anna, 'old');
        for (const version of ['v3', 'r0', 'v1']) {
          const response = await downloadUnauthenticated(server, media, version);
          assert.deepEqual([response.status, await response.text()], [200, 'old']);
          assert.match(response.headers.get('cache-control')!, /^public/);
        }
        assert.equal(
          (await downloadUnauthenticated(server, `${media}/name.png`)).headers.get('content-disposition'),
          'inline; filename=name.png',
        );
      });

      it('unauthenticated endpoints answer 404 M_NOT_FOUND for media that was stored since authentication is required', async () => {
        const { server, user: anna } = await start();
        const media = await uploadedMedia(server, anna, 'new');
        assert.equal(await codeOf(await downloadUnauthenticated(server, media)), '404 M_NOT_FOUND');
        assert.equal(await codeOf(await downloadUnauthenticated(server, 'test/unknown')), '404 M_NOT_FOUND');
        // These endpoints do not wait for a pending upload, because they will not serve it.
        const { body } = await server.api('POST', '/_matrix/media/v1/create', { token: anna.token });
        const pending = String(body['content_uri']).slice('mxc://'.length);
        const answer = await downloadUnauthenticated(server, `${pending}?timeout_ms=60000`);
        assert.equal(await codeOf(answer), '504 M_NOT_YET_UPLOADED');
        assert.equal(await (await download(server, anna, media)).text(), 'new');
      });
    });

    describe('media repository in another process', () => {
      afterEach(stopAll);

      it('serves no media endpoints [option: enable_media_repo]', async () => {
        const { server, user: anna } = await start({ enable_media_repo: false });
        const { status, body } = await upload(server, anna, 'x');
        assert.deepEqual([status, body['errcode']], [404, 'M_UNRECOGNIZED']);
        assert.equal(await codeOf(await download(server, anna, 'test/x')), '404 M_UNRECOGNIZED');
      });
    });

    describe('avatars of profiles', () => {
      afterEach(stopAll);

      it('rejects avatars that are too large, of another type, or of another server with 403', async () => {
        const { server, user: anna } = await start(
          {},
          { profiles: { max_avatar_size: 10, allowed_avatar_mimetypes: ['image/png'] } },
        );
        const set = async (media: string) => {
          const path = `/_matrix/client/v3/profile/${encodeURIComponent(anna.userId)}/avatar_url`;
          const body = { avatar_url: `mxc://${media}` };
          return (await server.api('PUT', path, { token: anna.token, body })).status;
        };
        assert.equal(await set(await uploadedMedia(server, anna, 'face')), 200);
        assert.equal(await set(await uploadedMedia(server, anna, 'face'.repeat(5))), 403);
        assert.equal(await set(await uploadedMedia(server, anna, 'face', { type: 'text/plain' })), 403);
        assert.equal(await set('other.test/face'), 403);
      });
    });
  });
}

interface Upload {
  readonly type?: string;
  readonly name?: string;
}

/** Returns the machine's clock, which a test can advance. */
function shiftedClock() {
  let shift = 0;
  return {
    now: () => systemClock.now() + shift,
    monotonic: () => systemClock.monotonic() + shift,
    setTimer: systemClock.setTimer,
    advance(milliseconds: number) {
      shift += milliseconds;
    },
  };
}
