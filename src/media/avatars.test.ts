import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { selectedDatabases } from '../../test/support/databases/databases.ts';
import { mediaServersForTests, uploadedMedia } from './test/media-servers.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`avatars of profiles on ${database}`, () => {
    const { start, stopAll } = mediaServersForTests(database);
    afterEach(stopAll);

    it('answers 403 to avatars that are too large, of a type that is not allowed, or of another server', async () => {
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
}
