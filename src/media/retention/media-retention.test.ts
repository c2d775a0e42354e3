import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { type SkippableClock, skippableClock } from '../../../test/support/clocks/skippable-clock.ts';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { filesBelow } from '../../../test/support/files/stored-files.ts';
import { testImage } from '../../../test/support/inputs/images.ts';
import { type FederatedServer, SeveralServers } from '../../../test/support/other-servers/several-servers.ts';
import { registerAdmin } from '../../../test/support/users/register-admin.ts';
import type { TestClient } from '../../../test/support/users/test-client.ts';

const day = 24 * 3_600_000;

for (const database of selectedDatabases(import.meta.url)) {
  describe(`media retention on ${database}`, () => {
    const store = mkdtempSync(join(tmpdir(), 'hearth-retention-'));
    let several: SeveralServers;
    let server: FederatedServer;
    let clock: SkippableClock;
    let admin: TestClient;

    before(async () => {
      clock = skippableClock();
      several = new SeveralServers(database);
      server = await several.homeserver('here.test', {
        clock,
        config: {
          media: {
            media_store_path: store,
            media_retention: { local_media_lifetime: 10 * day, remote_media_lifetime: 3 * day },
          },
        },
      });
      admin = await registerAdmin(server);
      const remote = await several.scripted('far.test');
      const image = await testImage(200, 100);
      remote.on('GET /_matrix/federation/v1/media/download', (request, response) => {
        const isImage = request.path.endsWith('/image');
        const part = `--b\r\nContent-Type: application/json\r\n\r\n{}\r\n--b\r\nContent-Type: ${isImage ? 'image/png' : 'text/plain'}\r\n\r\n`;
        response
          .writeHead(200, { 'content-type': 'multipart/mixed; boundary=b' })
          .end(
            Buffer.concat([
              Buffer.from(part),
              isImage ? image : Buffer.from(request.path),
              Buffer.from('\r\n--b--\r\n'),
            ]),
          );
        return undefined;
      });
    });
    after(async () => {
      await several.stop();
      rmSync(store, { recursive: true, force: true });
    });

    const upload = async (body: unknown) => {
      const headers = { 'content-type': 'image/png' };
      const answer = await server.api('POST', '/_matrix/media/v3/upload', {
        token: admin.token,
        body,
        headers,
      });
      return (answer.body['content_uri'] as string).slice('mxc://'.length);
    };
    const read = async (media: string, query = '') => {
      const path = `${server.baseUrl}/_matrix/client/v1/media/download/${media}${query}`;
      const response = await fetch(path, { headers: { authorization: `Bearer ${admin.token}` } });
      await response.arrayBuffer();
      return response.status;
    };
    const files = (below: string) => filesBelow(join(store, below)).length;
    /** Waits for a deletion. Advances the clock meanwhile, so that a job whose lease expired when the clock jumped runs again. */
    const untilDeleted = (what: string, check: () => boolean | Promise<boolean>) =>
      eventually(what, () => {
        clock.advance(600_000);
        return check();
      });
    const administer = (path: string, query = {}) =>
      admin.request('POST', `/_synapse/admin/v1${path}`, {}, query);

    it('deletes uploads that were not read during their lifetime, with their thumbnails, except protected and quarantined uploads [option: media_retention.local_media_lifetime]', async () => {
      const unread = await upload(await testImage(900, 700));
      const [readLater, safe, evil] = [
        await upload('read later'),
        await upload('safe'),
        await upload('evil'),
      ];
      assert.equal((await administer(`/media/protect/${safe.split('/')[1]}`)).status, 200);
      assert.equal((await administer(`/media/quarantine/${evil}`)).status, 200);
      await eventually('the thumbnails to be made', () => files('thumbnails') >= 6);
      clock.advance(9 * day);
      assert.equal(await read(readLater), 200);
      clock.advance(2 * day);
      await untilDeleted('the files to be deleted', () => files('local') === 3 && files('thumbnails') === 0);
      await eventually('the progress of the job', async () => {
        const tasks = await admin.request('GET', '/_synapse/admin/v1/scheduled_tasks', undefined, {
          action_name: 'media/retention',
        });
        const [task] = tasks.body['scheduled_tasks'] as { progress: unknown }[];
        return JSON.stringify(task?.progress) === JSON.stringify({ done: 1, total: null });
      });
      assert.equal(await read(unread), 404);
      await eventually('the markers of the deletions to be removed', () => files('incoming') === 0);
      assert.deepEqual([await read(readLater), await read(safe)], [200, 200]);
      const usage = await admin.request('GET', '/_synapse/admin/v1/statistics/users/media', undefined);
      const [{ media_count, media_length } = {}] = usage.body['users'] as Record<string, unknown>[];
      assert.deepEqual([media_count, media_length], [3, 'read latersafeevil'.length]);
    });

    it('deletes copies of remote media that were not read during their lifetime, with their thumbnails, except quarantined copies [option: media_retention.remote_media_lifetime]', async () => {
      for (const id of ['one', 'two', 'image']) assert.equal(await read(`far.test/${id}`), 200);
      const path = '/_matrix/client/v1/media/thumbnail/far.test/image?width=32&height=32&method=crop';
      const headers = { authorization: `Bearer ${admin.token}` };
      const thumbnail = await fetch(`${server.baseUrl}${path}`, { headers });
      assert.deepEqual([thumbnail.status, (await thumbnail.arrayBuffer()).byteLength > 0], [200, true]);
      assert.equal(files('remote'), 3);
      assert.ok(files('thumbnails') > 0);
      assert.equal((await administer('/media/quarantine/far.test/two')).status, 200);
      clock.advance(3 * day);
      assert.equal(await read('far.test/two'), 404);
      await untilDeleted(
        'the copies to be deleted',
        () => files('remote') === 1 && files('thumbnails') === 0,
      );
      assert.equal(await read('far.test/two', '?admin_unsafely_bypass_quarantine=true'), 200);
    });

    it('POST /purge_media_cache deletes copies of remote media that were last read before before_ts', async () => {
      for (const id of ['three', 'four']) assert.equal(await read(`far.test/${id}`), 200);
      const between = clock.now() + 1;
      clock.advance(1_000);
      assert.equal(await read('far.test/four'), 200);
      const purge = await administer('/purge_media_cache', { before_ts: between });
      assert.deepEqual([purge.status, purge.body], [200, { deleted: 1 }]);
      assert.equal(files('remote'), 2, 'the quarantined copy and the one that was read later');
    });
  });
}
