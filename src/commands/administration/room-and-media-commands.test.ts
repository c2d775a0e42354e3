import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { administeredServer, run } from './test/administered-server.ts';
import { timeIn } from './times.ts';

const client = '/_matrix/client/v3';
const encode = encodeURIComponent;

describe('timeIn', () => {
  it('reads dates and times of day as UTC wherever the command runs, and refuses other texts', () => {
    const { TZ } = process.env;
    process.env['TZ'] = 'America/New_York';
    try {
      const read = (text: string) => new Date(timeIn(text, 'past', 0)).toISOString();
      assert.equal(read('2026-11-23'), '2026-11-23T00:00:00.000Z');
      for (const text of ['2026-11-23T18:00', '2026-11-23T18:00:00.000Z', '2026-11-23T13:00-05:00']) {
        assert.equal(read(text), '2026-11-23T18:00:00.000Z', text);
      }
      for (const text of ['2026-11-23 18:00', '2026-11-23 about noon', '2026-13-01', '2026']) {
        assert.throws(() => read(text), /is not a time/, text);
      }
    } finally {
      if (TZ === undefined) delete process.env['TZ'];
      else process.env['TZ'] = TZ;
    }
  });
});

for (const database of selectedDatabases(import.meta.url)) {
  describe(`on ${database}`, () => {
    const subject = administeredServer(database);
    const { succeeds, fails, json, request } = subject;

    describe('hearth room', () => {
      let roomId = '';
      before(async () => {
        const body = {
          name: 'Garden',
          room_alias_name: 'garden',
          preset: 'public_chat',
          visibility: 'public',
        };
        roomId = String((await request('POST', `${client}/createRoom`, body))['room_id']);
      });

      it('lists and shows rooms and their members, by id and by alias', async () => {
        const table = await succeeds('room', 'list', '--search', 'gard');
        assert.match(
          table,
          /^Room .* Members {2}Local {2}Version {2}Public {2}Encrypted\n!\S+ +Garden {2}#garden:test +1 +1 +\d+ +- +-\n$/,
        );
        assert.equal(
          (await json('room', 'list', '--order-by', 'joined_members', '--reverse'))[0].room_id,
          roomId,
        );
        assert.equal(await succeeds('room', 'list', '--search', 'nothing'), 'No room matches.\n');
        assert.match(await succeeds('room', 'show', '#garden'), /name +Garden\n[\s\S]*blocked +no\n/);
        assert.equal(await succeeds('room', 'members', '#garden:test'), 'Member\n@ann:test\n');
        assert.match(await fails('room', 'show', '#nothing'), /no room with the alias #nothing:test/);
        assert.match(await fails('room', 'show', 'garden'), /neither a room id/);
        assert.match(await fails('room', 'show', '!nothing:test'), /answered 404: Room not found/);
      });

      it('blocks and unblocks rooms, and makes users administrators of rooms', async () => {
        assert.match(await succeeds('room', 'block', roomId), /cannot enter/);
        assert.equal((await json('room', 'show', roomId)).blocked, true);
        assert.match(await succeeds('room', 'unblock', roomId), /can enter .* again/);
        assert.match(await succeeds('room', 'make-admin', '#garden'), /^@admin:test has all rights/);
        const levels = await request('GET', `${client}/rooms/${encode(roomId)}/state/m.room.power_levels/`);
        assert.equal((levels['users'] as Record<string, number>)['@admin:test'], 100);
      });

      it('purges history, waits until the purge is complete, and shows a progress bar', async () => {
        const send = async (text: string) =>
          String(
            (
              await request('PUT', `${client}/rooms/${encode(roomId)}/send/m.room.message/${text}`, {
                msgtype: 'm.text',
                body: text,
              })
            )['event_id'],
          );
        const first = await send('first');
        const last = await send('last');
        assert.match(
          await fails('room', 'purge-history', roomId, '--before', last),
          /Messages of local users stay\. Nothing was done/,
        );
        const { out, progress } = await run(
          subject.home,
          'room',
          'purge-history',
          roomId,
          '--before',
          last,
          '--delete-local',
          '-y',
        );
        assert.equal(out, `Deleted the history of ${roomId} before ${last}.\n`);
        assert.match(
          progress.replaceAll('\u001b[K', ''),
          /^(\r\[[#.]{30}\] deleting the history of \S+: depth \d+ of \d+)*\r?$/,
        );
        const path = (eventId: string) => `${client}/rooms/${encode(roomId)}/event/${encode(eventId)}`;
        assert.equal(
          (await subject.server.api('GET', path(first), { token: subject.ann.token })).status,
          404,
        );
        assert.equal((await subject.server.api('GET', path(last), { token: subject.ann.token })).status, 200);
        assert.match(
          await fails('room', 'purge-history', roomId, '--before', 'yesterday', '-y'),
          /expected a date \(2026-11-23\) or a duration/,
        );
      });

      it('deletes a room after a confirmation, and waits until it is deleted', async () => {
        assert.match(
          await fails('room', 'delete', '#garden'),
          /removes 1 local member from \S+ \(Garden\) and deletes its messages on this server\. Nothing was done/,
        );
        const renamed = `${client}/rooms/${encodeURIComponent(roomId)}/state/m.room.name`;
        await request('PUT', renamed, { name: '\u001b]52;c;cm0=\u0007\u202e' });
        assert.match(await fails('room', 'delete', '#garden'), / \(�\]52;c;cm0=��\) /);
        const out = await succeeds(
          'room',
          'delete',
          '#garden',
          '-y',
          '--block',
          '--new-room-user',
          'admin',
          '--new-room-name',
          'Moved',
          '--message',
          'Sorry',
        );
        assert.equal(
          out,
          `Deleted ${roomId}; 1 local member was removed. Local users cannot enter it again.\n`,
        );
        assert.match(await fails('room', 'show', roomId), /Room not found/);
        assert.match(await succeeds('room', 'list'), /Moved/);
      });
    });

    describe('hearth media', () => {
      const upload = async () => {
        const answer = await subject.server.api('POST', '/_matrix/media/v3/upload', {
          token: subject.ann.token,
          body: 'text',
          headers: { 'content-type': 'text/plain' },
        });
        return String(answer.body['content_uri']);
      };

      it('lists, quarantines and releases the files of users and rooms', async () => {
        const uri = await upload();
        const table = await succeeds('media', 'list', '--user', 'ann');
        assert.match(table, new RegExp(`^Media .*\\n${uri} +4 B {2}text/plain`));
        assert.equal(await succeeds('media', 'quarantine', uri), 'Quarantined 1 file.\n');
        const path = `/_matrix/client/v1/media/download/${uri.slice('mxc://'.length)}`;
        assert.equal((await subject.server.api('GET', path, { token: subject.ann.token })).status, 404);
        assert.equal(await succeeds('media', 'unquarantine', uri), 'Released 1 file from quarantine.\n');
        assert.equal((await subject.server.api('GET', path, { token: subject.ann.token })).status, 200);
        assert.deepEqual(await json('media', 'quarantine', '--user', 'ann'), { num_quarantined: 1 });
        const roomId = String((await request('POST', `${client}/createRoom`, {}))['room_id']);
        await request('PUT', `${client}/rooms/${encode(roomId)}/send/m.room.message/file`, {
          msgtype: 'm.file',
          body: 'a',
          url: uri,
        });
        assert.equal(
          await succeeds('media', 'list', '--room', roomId),
          `Media${' '.repeat(uri.length - 3)}Origin\n${uri}  local\n`,
        );
        assert.match(await succeeds('media', 'quarantine', '--room', roomId), /^Quarantined \d files\.\n$/);
        assert.match(await fails('media', 'list'), /give either --user, or --room/);
        assert.match(await fails('media', 'quarantine', 'nonsense'), /expected mxc:\/\/server\/id/);
        assert.equal(
          await succeeds('media', 'list', '--user', 'admin'),
          '@admin:test has uploaded nothing.\n',
        );
      });

      it('deletes given files, unused files, and all files of a user with a progress bar', async () => {
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

    describe('hearth token', () => {
      it('lists tokens that expire later than any date', async () => {
        const body = { token: 'late', expiry_time: Number.MAX_SAFE_INTEGER };
        const path = '/_synapse/admin/v1/registration_tokens';
        await subject.server.api('POST', `${path}/new`, { token: subject.adminToken, body });
        assert.match(await succeeds('token', 'list'), /^late .*\+275760-09-13 00:00/m);
        await subject.server.api('DELETE', `${path}/late`, { token: subject.adminToken });
      });

      it('creates, lists, changes and deletes registration tokens', async () => {
        assert.equal(await succeeds('token', 'list'), 'There are no tokens.\n');
        assert.equal(
          await succeeds('token', 'create', '--token', 'friends', '--uses', '5', '--expires', '2099-01-01'),
          'friends\n',
        );
        assert.match(await succeeds('token', 'create'), /^\S{16}\n$/);
        assert.match(
          await succeeds('token', 'list', '--valid'),
          /^Token .*\n(.*\n)?friends +5 +0 +0 {2}2099-01-01 00:00\n/m,
        );
        assert.deepEqual(await json('token', 'list', '--invalid'), []);
        const changed = await json('token', 'change', 'friends', '--uses', 'any', '--expires', 'never');
        assert.deepEqual([changed.uses_allowed, changed.expiry_time], [null, null]);
        const soon = await json('token', 'change', 'friends', '--expires', '1h');
        assert.ok(Math.abs(soon.expiry_time - Date.now() - 3_600_000) < 60_000);
        assert.equal(await succeeds('token', 'delete', 'friends'), 'Deleted the token friends.\n');
        assert.match(await fails('token', 'delete', 'friends'), /answered 404/);
        assert.match(await fails('token', 'change', 'friends'), /give --uses or --expires/);
        assert.match(await fails('token', 'create', '--uses', 'some'), /expected a number or any/);
      });
    });
  });
}
