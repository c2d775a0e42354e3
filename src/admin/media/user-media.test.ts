import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { unhurriedClock } from '../../../test/support/clocks/unhurried-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { Administration } from '../test/administration.ts';
import { mediaCalls } from '../test/media-calls.ts';
import { readPagesWhileChanging } from '../test/read-pages.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('lists of the media of users in the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    before(async () => {
      server = await startTestServer({ database: kind, clock: unhurriedClock });
      admin = await Administration.open(server);
    });
    after(() => server.stop());
    const { newUser, upload, download, listOf, idsOf } = mediaCalls(() => ({ server, admin }));

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
  });
});
