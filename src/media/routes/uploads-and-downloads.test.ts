import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { filesBelow } from '../../../test/support/files/stored-files.ts';
import type { TestServer, TestUser } from '../../../test/support/servers/server.ts';
import {
  download,
  get,
  mediaServersForTests,
  statusAndErrcode,
  upload,
  uploadedMedia,
} from '../test/media-servers.ts';

const html = '<script>alert(1)</script>';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`uploads and downloads on ${database}`, () => {
    const { start } = mediaServersForTests(database);
    let server: TestServer;
    let anna: TestUser;
    let store: string;
    before(async () => {
      ({ server, user: anna, store } = await start());
    });

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
      const withSlash = await download(server, anna, `${media}/`);
      assert.equal(withSlash.headers.get('content-disposition'), header('content-disposition'));
      const head = await get(server, `/_matrix/client/v1/media/download/${media}`, anna, 'HEAD');
      assert.deepEqual([head.status, head.headers.get('content-length')], [200, '300000']);
      assert.equal(filesBelow(store).length, 1);
    });

    it('requires an access token for uploads and downloads', async () => {
      const media = await uploadedMedia(server, anna, 'x');
      assert.equal(
        await statusAndErrcode(await get(server, `/_matrix/client/v1/media/download/${media}`)),
        '401 M_MISSING_TOKEN',
      );
      const { status } = await server.api('POST', '/_matrix/media/v3/upload', { body: 'x' });
      assert.equal(status, 401);
    });

    it('serves as an attachment all content that browsers could execute', async () => {
      for (const type of ['text/html', 'image/svg+xml', 'nonsense']) {
        const media = await uploadedMedia(server, anna, html, { type });
        const { headers } = await download(server, anna, media);
        assert.equal(headers.get('content-disposition'), 'attachment');
        assert.equal(headers.get('content-type'), type === 'nonsense' ? 'application/octet-stream' : type);
      }
    });

    it('answers 404 M_NOT_FOUND to unknown and invalid media ids', async () => {
      const secret = '..%2F..%2F..%2F..%2Fetc%2Fpasswd';
      for (const media of [
        'test/unknown',
        `test/${secret}`,
        `..%2F..%2Fetc/passwd`,
        'test/%00',
        'test/.',
        'a_b/x',
      ]) {
        assert.equal(await statusAndErrcode(await download(server, anna, media)), '404 M_NOT_FOUND', media);
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
      await eventually(
        'the file of the upload to be deleted',
        async () => filesBelow(store).length === before,
      );
    });

    it('answers 400 M_INVALID_PARAM to an upload whose file name is too long', async () => {
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
      assert.equal(await statusAndErrcode(await download(server, anna, media)), '404 M_NOT_FOUND');
      assert.equal(await (await download(server, anna, await uploadedMedia(server, anna, 'y'))).text(), 'y');
    });
  });
}
