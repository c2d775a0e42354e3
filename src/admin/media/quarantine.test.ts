import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { unhurriedClock } from '../../../test/support/clocks/unhurried-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';
import { mediaCalls } from '../test/media-calls.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('quarantine by the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    before(async () => {
      server = await startTestServer({ database: kind, clock: unhurriedClock });
      admin = await Administration.open(server);
    });
    after(() => server.stop());
    const { newUser, upload, download } = mediaCalls(() => ({ server, admin }));

    it('quarantines all files of the same content, also a file that is uploaded later, and releases one file', async () => {
      const user = await newUser();
      const [bad, same, other] = [
        await upload(user, 'bad content'),
        await upload(user, 'bad content'),
        await upload(user, 'good content'),
      ];
      assert.deepEqual(await admin.do('POST', `/v1/media/quarantine/test/${bad}`), {});
      const later = await upload(user, 'bad content');
      const statuses = [bad, same, later, other].map((id) => download(user, id));
      assert.deepEqual(await Promise.all(statuses), [404, 404, 404, 200]);
      const { media_info } = await admin.do('GET', `/v1/media/test/${bad}`);
      const info = media_info as Record<string, unknown>;
      assert.deepEqual(
        [info['media_origin'], info['user_id'], info['media_length'], info['quarantined_by']],
        ['test', user.id, 11, '@admin:test'],
      );
      const changes = async (from: number) =>
        (await admin.do('GET', '/v1/media/quarantine_changes', undefined, { from })) as unknown as {
          next_batch: number;
          changes: { origin: string; media_id: string; quarantined: boolean }[];
        };
      const pairs = async (from = 0) =>
        (await changes(from)).changes.map(({ media_id, quarantined }) => [media_id, quarantined]);
      const quarantined = await changes(0);
      assert.deepEqual(
        (await pairs()).slice(0, 2).sort(),
        [
          [bad, true],
          [same, true],
        ].sort(),
      );
      await admin.do('POST', `/v1/media/unquarantine/test/${bad}`);
      assert.deepEqual([await download(user, bad), await download(user, same)], [200, 404]);
      await admin.do('POST', `/v1/media/unquarantine/test/${bad}`);
      assert.deepEqual(await pairs(quarantined.next_batch), [[bad, false]]);
      // The list has the last change of each file only, so that it does not grow with each change.
      const listed = await changes(0);
      const found = await pairs();
      assert.deepEqual(
        found.filter(([id]) => id === bad),
        [[bad, false]],
      );
      assert.deepEqual(found.at(-1), [bad, false]);
      assert.equal(found.filter(([, isQuarantined]) => !isQuarantined).length, 1);
      assert.deepEqual(await changes(listed.next_batch), { next_batch: listed.next_batch, changes: [] });
      assert.deepEqual(await admin.refused('GET', '/v1/media/test/unknown'), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await admin.refused('GET', `/v1/media/test/${enc('a\0')}`), [404, 'M_NOT_FOUND']);
    });

    it('lets administrators download a quarantined file with admin_unsafely_bypass_quarantine, and lists these downloads in the audit log', async () => {
      const user = await newUser();
      const mediaId = await upload(user, 'evidence');
      await admin.do('POST', `/v1/media/quarantine/test/${mediaId}`);
      const bypass = async (token: string, value = 'true', rest = '') => {
        const path = `/_matrix/client/v1/media/download/test/${mediaId}${rest}`;
        const query = { admin_unsafely_bypass_quarantine: value };
        const { status, body, raw } = await server.api('GET', path, { token, query });
        return [status, status === 200 ? raw : body['errcode']];
      };
      const { token } = admin.admin;
      assert.deepEqual(await bypass(token), [200, 'evidence']);
      assert.deepEqual(await bypass(token, 'true', '/named.txt'), [200, 'evidence']);
      assert.deepEqual(await bypass(token, 'false'), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await bypass(user.token), [403, 'M_FORBIDDEN']);
      assert.equal(await download(user, mediaId), 404);
      assert.equal(await download(admin.admin, mediaId), 404);
      const entries = async (operation: string) => {
        const log = await admin.do('GET', '/v1/audit_log', undefined, { operation });
        return (log['entries'] as Record<string, unknown>[]).map((entry) => [
          entry['admin'],
          entry['target'],
          entry['status'],
        ]);
      };
      assert.deepEqual(await entries('getContentAuthed'), [
        [user.id, `test ${mediaId}`, 403],
        ['@admin:test', `test ${mediaId}`, 200],
      ]);
      assert.deepEqual(await entries('getContentOverrideNameAuthed'), [
        ['@admin:test', `test ${mediaId} named.txt`, 200],
      ]);
    });

    it('quarantines the media of a user and of a room, and leaves protected media readable', async () => {
      const user = await newUser();
      const [firstId, secondId, protectedId] = [
        await upload(user, 'one'),
        await upload(user, 'two'),
        await upload(user, 'safe'),
      ];
      await admin.do('POST', `/v1/media/protect/${protectedId}`);
      const quarantined = await admin.do('POST', `/v1/user/${user.id}/media/quarantine`);
      assert.deepEqual(quarantined, { num_quarantined: 2 });
      const statuses = [firstId, secondId, protectedId].map((id) => download(user, id));
      assert.deepEqual(await Promise.all(statuses), [404, 404, 200]);
      await admin.do('POST', `/v1/media/unprotect/${protectedId}`);
      assert.deepEqual(await admin.refused('POST', '/v1/media/protect/unknown'), [404, 'M_NOT_FOUND']);

      const roomId = await user.createRoom();
      const thumbnail = await upload(user, 'thumbnail');
      await user.send(roomId, 'm.room.message', {
        msgtype: 'm.image',
        body: 'x',
        url: `mxc://test/${protectedId}`,
        info: { thumbnail_url: `mxc://test/${thumbnail}` },
      });
      await user.send(roomId, 'm.room.message', { msgtype: 'm.image', body: 'x', url: 'mxc://remote/abc' });
      const found = await admin.do('GET', `/v1/room/${enc(roomId)}/media`);
      assert.deepEqual(
        (found['local'] as string[]).toSorted(),
        [`mxc://test/${protectedId}`, `mxc://test/${thumbnail}`].toSorted(),
      );
      assert.deepEqual(found['remote'], ['mxc://remote/abc']);
      const inRoom = await admin.do('POST', `/v1/room/${enc(roomId)}/media/quarantine`);
      assert.deepEqual(inRoom, { num_quarantined: 2 });
      assert.deepEqual([await download(user, protectedId), await download(user, thumbnail)], [404, 404]);
    });

    it('POST /quarantine_media/{roomId} lets only administrators quarantine the media of a room', async () => {
      const user = await newUser();
      const mediaId = await upload(user, 'in a room');
      const roomId = await user.createRoom();
      const url = `mxc://test/${mediaId}`;
      await user.send(roomId, 'm.room.message', { msgtype: 'm.image', body: 'x', url });
      const path = `/v1/quarantine_media/${enc(roomId)}`;
      const refused = await user.request('POST', `/_synapse/admin${path}`, {});
      assert.deepEqual([refused.status, refused.body['errcode']], [403, 'M_FORBIDDEN']);
      assert.equal(await download(user, mediaId), 200);
      assert.deepEqual(await admin.do('POST', path), { num_quarantined: 1 });
      assert.equal(await download(user, mediaId), 404);
      for (const unknown of ['!unknown:test', 'x'])
        assert.deepEqual(
          await admin.refused('POST', `/v1/quarantine_media/${enc(unknown)}`),
          await admin.refused('POST', `/v1/room/${enc(unknown)}/media/quarantine`),
        );
    });
  });
});
