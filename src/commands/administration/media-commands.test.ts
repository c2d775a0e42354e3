import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { administeredServer, run } from './test/administered-server.ts';

const clientApi = '/_matrix/client/v3';
const encode = encodeURIComponent;

for (const database of selectedDatabases(import.meta.url)) {
  describe(`hearth media on ${database}`, () => {
    const subject = administeredServer(database);
    const { succeeds, fails, json, request } = subject;

    const upload = async () => {
      const answer = await subject.server.api('POST', '/_matrix/media/v3/upload', {
        token: subject.ann.token,
        body: 'text',
        headers: { 'content-type': 'text/plain' },
      });
      return String(answer.body['content_uri']);
    };

    it('lists the files of a user or room, quarantines one file or all of a user or room, and releases a file', async () => {
      const uri = await upload();
      const table = await succeeds('media', 'list', '--user', 'ann');
      assert.match(table, new RegExp(`^Media .*\\n${uri} +4 B {2}text/plain`));
      assert.equal(await succeeds('media', 'quarantine', uri), 'Quarantined 1 file.\n');
      const path = `/_matrix/client/v1/media/download/${uri.slice('mxc://'.length)}`;
      assert.equal((await subject.server.api('GET', path, { token: subject.ann.token })).status, 404);
      assert.equal(await succeeds('media', 'unquarantine', uri), 'Released 1 file from quarantine.\n');
      assert.equal((await subject.server.api('GET', path, { token: subject.ann.token })).status, 200);
      assert.deepEqual(await json('media', 'quarantine', '--user', 'ann'), { num_quarantined: 1 });
      const roomId = String((await request('POST', `${clientApi}/createRoom`, {}))['room_id']);
      await request('PUT', `${clientApi}/rooms/${encode(roomId)}/send/m.room.message/file`, {
        msgtype: 'm.file',
        body: 'a',
        url: uri,
      });
      assert.equal(
        await succeeds('media', 'list', '--room', roomId),
        `Media${' '.repeat(uri.length - 3)}Origin\n${uri}  local\n`,
      );
      assert.match(await succeeds('media', 'quarantine', '--room', roomId), /^Quarantined \d files?\.\n$/);
      assert.match(await fails('media', 'list'), /give either --user, or --room/);
      assert.match(await fails('media', 'quarantine', 'nonsense'), /expected mxc:\/\/server\/id/);
      assert.equal(await succeeds('media', 'list', '--user', 'admin'), '@admin:test has uploaded nothing.\n');
    });

    it('deletes given files and unused files, and shows a progress bar while it deletes all files of a user', async () => {
      const uri = await upload();
      assert.match(await fails('media', 'delete', uri), /deletes 1 file for everyone\. Nothing was done/);
      assert.equal(await succeeds('media', 'delete', uri, '-y'), 'Deleted 1 file.\n');
      assert.match(await fails('media', 'delete', uri, '-y'), /Unknown media/);
      assert.match(await fails('media', 'delete', uri, '--user', 'ann'), /or --user, or --before/);
      assert.equal(
        await succeeds('media', 'delete', '--before', '1d', '--larger-than', '1K', '-y'),
        'Deleted 0 files.\n',
      );
      await upload();
      const { out, progress } = await run(subject.home, 'media', 'delete', '--user', 'ann', '-y');
      assert.equal(out, 'Deleted 2 files.\n');
      assert.equal(progress, `\r[${'#'.repeat(30)}] 2 of 2 files deleted\u001b[K\r\u001b[K`);
      assert.match(await succeeds('media', 'purge-remote', '--before', '30d'), /copies of 0 remote files/);
    });
  });
}
