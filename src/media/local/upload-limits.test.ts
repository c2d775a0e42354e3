import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { filesBelow } from '../../../test/support/files/stored-files.ts';
import { mediaServersForTests, statusAndErrcode, upload, uploadedMedia } from '../test/media-servers.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`limits of uploads on ${database}`, () => {
    const { start, stopAll } = mediaServersForTests(database);
    afterEach(stopAll);

    it('answers 413 M_TOO_LARGE to uploads that are too large [option: max_upload_size]', async () => {
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
      assert.equal(await statusAndErrcode(response), '413 M_TOO_LARGE');
      assert.equal(filesBelow(store).length, 1);
    });

    it('answers 403 M_FORBIDDEN to uploads beyond the quota [option: media_upload_limits[].time_period] [option: media_upload_limits[].max_size]', async () => {
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
      const resultOf = async (size: number, user = anna) => {
        const { status, body } = await upload(server, user, 'x'.repeat(size));
        return status === 200 ? 'taken' : `${status} ${body['errcode']}`;
      };
      assert.equal(await resultOf(101), '403 M_FORBIDDEN');
      assert.equal(await resultOf(60), 'taken');
      assert.equal(await resultOf(41), '403 M_FORBIDDEN');
      assert.equal(await resultOf(100, ben), 'taken');
      clock.advance(60_000);
      assert.equal(await resultOf(90), 'taken');
      clock.advance(60_000);
      assert.equal(await resultOf(1), '403 M_FORBIDDEN', 'the longer period counts both uploads');
      clock.advance(480_000);
      assert.equal(await resultOf(60), 'taken');
      assert.equal(filesBelow(store).length, 4);
    });
  });
}
