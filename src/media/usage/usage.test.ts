import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { registerAdmin } from '../../../test/support/users/register-admin.ts';
import { TestClient } from '../../../test/support/users/test-client.ts';
import { checkDatabase, type Database, migrate, openDatabase } from '../../kernel/database/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { mediaMigrations } from '../migrations.ts';
import { deleteExpired, insertPending, insertPreviewImage, insertUploaded } from '../store.ts';
import type { MediaTables } from '../tables.ts';
import { mediaUsageCheck, mediaUsageMigration } from './migration.ts';

const migrationsBeforeUsage = mediaMigrations.slice(0, mediaMigrations.indexOf(mediaUsageMigration));

const differences = (database: Database) => mediaUsageCheck.find({ main: database, state: database });

const sums = (database: Database) =>
  database
    .reader<MediaTables>()
    .selectFrom('media_usage')
    .select(['user_id', 'files', 'bytes', 'first_at', 'last_at'])
    .orderBy('user_id')
    .execute();

forSelectedDatabases(import.meta.url, (open) => {
  describe('sums of uploads', () => {
    const file = (name: string, size: number) => ({
      fileId: name,
      sha256: name,
      size,
      contentType: 'text/plain',
      fileName: undefined,
      isAuthenticated: true,
      quarantinedBy: undefined,
      beginning: new Uint8Array(),
    });
    const rowOf = (index: number, userId: string) => ({
      media_id: `media${index}`,
      user_id: userId,
      created_at: index,
      expires_at: null,
      uploaded_at: index,
      file_id: `file${index}`,
      content_type: null,
      file_name: null,
      size: index,
      sha256: '',
      authenticated: 1,
    });

    it('counts the sums of uploads of all users when a database without these sums is upgraded', async () => {
      const database = await open(migrationsBeforeUsage);
      await database.transaction<MediaTables, void>(async (writer) => {
        for (let index = 0; index < 1_201; index++) {
          const userId = `@user${index % 600}:test`;
          await writer.insertInto('local_media').values(rowOf(index, userId)).execute();
        }
        await insertPending(writer, { mediaId: 'pending', userId: '@later:test', at: 1, expiresAt: 9 });
        await writer
          .insertInto('local_media')
          .values({ ...rowOf(9_000, ''), preview_until: 5 })
          .execute();
      });
      await migrate(database, mediaMigrations);
      const counted = await sums(database);
      assert.equal(counted.length, 600);
      assert.deepEqual(counted[0], {
        user_id: '@user0:test',
        files: 3,
        bytes: 0 + 600 + 1_200,
        first_at: 0,
        last_at: 1_200,
      });
      assert.deepEqual(counted.at(-1), {
        user_id: '@user9:test',
        files: 2,
        bytes: 9 + 609,
        first_at: 9,
        last_at: 609,
      });
      assert.deepEqual(await differences(database), { count: 0, examples: [] });
    });

    it('leaves images of URL previews and media ids without an upload out of the sums of uploads', async () => {
      const database = await open(mediaMigrations);
      await database.transaction<MediaTables, void>(async (writer) => {
        await insertPending(writer, { mediaId: 'p', userId: '@ann:test', at: 1, expiresAt: 2 });
        await insertPreviewImage(writer, { mediaId: 'i', at: 1, until: 9 }, file('image', 50));
        await insertUploaded(writer, { mediaId: 'u', userId: '@bob:test', at: 1 }, file('upload', 7));
        await deleteExpired(writer, '@ann:test', 5);
      });
      assert.deepEqual(await sums(database), [
        { user_id: '@bob:test', files: 1, bytes: 7, first_at: 1, last_at: 1 },
      ]);
      assert.deepEqual(await differences(database), { count: 0, examples: [] });
    });

    it('hearth database check finds the sums that differ from the uploads, and corrects these sums', async () => {
      const database = await open(mediaMigrations);
      const stores = { main: database, state: database };
      await database.transaction<MediaTables, void>(async (writer) => {
        await insertUploaded(writer, { mediaId: 'a', userId: '@ann:test', at: 1 }, file('a', 7));
        await insertUploaded(writer, { mediaId: 'b', userId: '@bob:test', at: 1 }, file('b', 8));
        await writer
          .updateTable('media_usage')
          .set({ bytes: 6 })
          .where('user_id', '=', '@ann:test')
          .execute();
        await writer
          .insertInto('media_usage')
          .values({ user_id: '@carl:test', files: 1, bytes: 1, first_at: 1, last_at: 1 })
          .execute();
        await writer.deleteFrom('media_usage').where('user_id', '=', '@bob:test').execute();
        // The period of Dora's uploads does not contain one of them.
        await insertUploaded(writer, { mediaId: 'd', userId: '@dora:test', at: 3 }, file('d', 2));
        await insertUploaded(writer, { mediaId: 'e', userId: '@dora:test', at: 9 }, file('e', 2));
        await writer
          .updateTable('media_usage')
          .set({ last_at: 8 })
          .where('user_id', '=', '@dora:test')
          .execute();
      });
      const [result] = await checkDatabase(stores, [mediaUsageCheck], true);
      assert.deepEqual([result?.count, result?.outcome], [4, 'mended']);
      assert.deepEqual(await sums(database), [
        { user_id: '@ann:test', files: 1, bytes: 7, first_at: 1, last_at: 1 },
        { user_id: '@bob:test', files: 1, bytes: 8, first_at: 1, last_at: 1 },
        { user_id: '@dora:test', files: 2, bytes: 4, first_at: 3, last_at: 9 },
      ]);
    });
  });

  describe('sums of uploads of a server', () => {
    let server: TestServer;
    let database: Database;
    let admin: TestClient;
    let ann: TestClient;
    let bob: TestClient;
    before(async () => {
      server = await startTestServer({ database: open.kind });
      database = await openDatabase(server.databaseOptions, { log: silentLogger });
      admin = await registerAdmin(server);
      [ann, bob] = [await TestClient.register(server, 'ann'), await TestClient.register(server, 'bob')];
    });
    after(async () => {
      await database.close();
      await server.stop();
    });

    const send = async (user: TestClient, method: string, path: string, body: string) => {
      const headers = { 'content-type': 'text/plain' };
      const answer = await server.api(method, path, { token: user.token, body, headers });
      assert.equal(answer.status, 200, answer.raw);
      return String(answer.body['content_uri']).slice('mxc://test/'.length);
    };
    const upload = (user: TestClient, body: string) => send(user, 'POST', '/_matrix/media/v3/upload', body);
    const administer = async (method: string, path: string, body?: object) => {
      const answer = await admin.request(method, `/_synapse/admin/v1${path}`, body);
      assert.equal(answer.status, 200, answer.raw);
    };
    /** Checks the sums of Ann and Bob, each as files and bytes, and that the stored sums of all users are exact. */
    const expectSums = async (...expected: readonly (readonly [files: number, bytes: number])[]) => {
      assert.deepEqual(await differences(database), { count: 0, examples: [] });
      const stored = await sums(database);
      assert.deepEqual(
        stored.map(({ files, bytes }) => [files, bytes]),
        expected,
      );
    };

    it('updates the sums of uploads on simultaneous uploads, uploads under reserved ids, quarantine, protection, deletion, deactivation and erasure', async () => {
      const ids = await Promise.all(
        Array.from({ length: 12 }, (_, index) => upload(ann, `file ${index % 10}`)),
      );
      await expectSums([12, 72]);
      const reserved = await server.api('POST', '/_matrix/media/v1/create', { token: bob.token });
      const reservedId = String(reserved.body['content_uri']).slice('mxc://test/'.length);
      await expectSums([12, 72]);
      await send(bob, 'PUT', `/_matrix/media/v3/upload/test/${reservedId}`, 'reserved');
      await upload(bob, 'other');
      await expectSums([12, 72], [2, 13]);
      await administer('POST', `/media/quarantine/test/${ids[0]}`, {});
      await administer('POST', `/media/protect/${ids[1]}`, {});
      await expectSums([12, 72], [2, 13]);
      await administer('DELETE', `/media/test/${ids[2]}`);
      await expectSums([11, 66], [2, 13]);
      await administer('POST', '/media/delete?before_ts=4000000000000&size_gt=5', {});
      // The quarantined file, the file with the same content, the protected file and the small file stay.
      await expectSums([3, 18], [1, 5]);
      await administer('DELETE', '/users/@bob:test/media');
      await expectSums([3, 18]);
      await administer('POST', '/deactivate/@ann:test', { erase: true });
      await expectSums([3, 18]);
      await administer('DELETE', '/users/@ann:test/media');
      await expectSums();
    });
  });
});
