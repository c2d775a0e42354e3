import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { filesBelow } from '../../../test/support/files/stored-files.ts';
import { codeOf, mediaServersForTests, upload, uploadedMedia } from '../test/media-servers.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`limits of uploads on ${database}`, () => {
    const { start, stopAll } = mediaServersForTests(database);
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
}
