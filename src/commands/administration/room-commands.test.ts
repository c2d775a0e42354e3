import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { administeredServer, run } from './test/administered-server.ts';

const clientApi = '/_matrix/client/v3';
const encode = encodeURIComponent;

for (const database of selectedDatabases(import.meta.url)) {
  describe(`hearth room on ${database}`, () => {
    const subject = administeredServer(database);
    const { succeeds, fails, json, request } = subject;

    let roomId = '';
    before(async () => {
      const body = {
        name: 'Garden',
        room_alias_name: 'garden',
        preset: 'public_chat',
        visibility: 'public',
      };
      roomId = String((await request('POST', `${clientApi}/createRoom`, body))['room_id']);
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
      assert.match(
        await succeeds('room', 'make-admin', '#garden'),
        /^@admin:test has the highest power level of the local members/,
      );
      const levels = await request('GET', `${clientApi}/rooms/${encode(roomId)}/state/m.room.power_levels/`);
      assert.equal((levels['users'] as Record<string, number>)['@admin:test'], 100);
    });

    it('purges history, waits until the purge is complete, and shows a progress bar', async () => {
      const send = async (text: string) =>
        String(
          (
            await request('PUT', `${clientApi}/rooms/${encode(roomId)}/send/m.room.message/${text}`, {
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
      const path = (eventId: string) => `${clientApi}/rooms/${encode(roomId)}/event/${encode(eventId)}`;
      assert.equal((await subject.server.api('GET', path(first), { token: subject.ann.token })).status, 404);
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
      const renamed = `${clientApi}/rooms/${encodeURIComponent(roomId)}/state/m.room.name`;
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
}
