import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import type { TestServer } from '../../../test/support/servers/server.ts';
import {
  download,
  get,
  mediaOf,
  mediaServersForTests,
  statusAndErrcode,
  upload,
  uploadedMedia,
} from '../test/media-servers.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`media endpoints on ${database}`, () => {
    const { start, stopAll } = mediaServersForTests(database);
    afterEach(stopAll);
    const downloadUnauthenticated = (server: TestServer, media: string, version = 'v3') =>
      get(server, `/_matrix/media/${version}/download/${media}`);

    it('unauthenticated endpoints serve media that was stored before authentication was required [option: enable_authenticated_media]', async () => {
      const { server, user: anna } = await start({ enable_authenticated_media: false });
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

    it('unauthenticated endpoints answer 404 M_NOT_FOUND for unknown media and for media that was stored while authentication was required, and 504 M_NOT_YET_UPLOADED at once for pending uploads', async () => {
      const { server, user: anna } = await start();
      const media = await uploadedMedia(server, anna, 'new');
      assert.equal(await statusAndErrcode(await downloadUnauthenticated(server, media)), '404 M_NOT_FOUND');
      assert.equal(
        await statusAndErrcode(await downloadUnauthenticated(server, 'test/unknown')),
        '404 M_NOT_FOUND',
      );
      // These endpoints do not wait for a pending upload, because they will not serve it.
      const { body } = await server.api('POST', '/_matrix/media/v1/create', { token: anna.token });
      const pending = mediaOf(body);
      const answer = await downloadUnauthenticated(server, `${pending}?timeout_ms=60000`);
      assert.equal(await statusAndErrcode(answer), '504 M_NOT_YET_UPLOADED');
      assert.equal(await (await download(server, anna, media)).text(), 'new');
    });

    it('answers GET /config in each version of the API', async () => {
      const { server, user: anna } = await start({ max_upload_size: 1_048_576 });
      for (const path of ['media/v3', 'media/r0', 'media/v1', 'client/v1/media']) {
        const { status, body } = await server.api('GET', `/_matrix/${path}/config`, { token: anna.token });
        assert.deepEqual([status, body], [200, { 'm.upload.size': 1_048_576 }], path);
      }
    });

    it('serves no media endpoints when enable_media_repo is false [option: enable_media_repo]', async () => {
      const { server, user: anna } = await start({ enable_media_repo: false });
      const { status, body } = await upload(server, anna, 'x');
      assert.deepEqual([status, body['errcode']], [404, 'M_UNRECOGNIZED']);
      assert.equal(await statusAndErrcode(await download(server, anna, 'test/x')), '404 M_UNRECOGNIZED');
    });
  });
}
