import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { enc } from '../../../test/support/users/test-client.ts';
import { assertRefused, roomOfAnnaAndBen, ServerOfThreeUsers } from './test/three-users.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`endpoints that manage aliases, on ${database}`, () => {
    const users = new ServerOfThreeUsers(database);

    it('creates an alias once, and lets only users with permission delete it', async () => {
      const { anna, ben } = users;
      const roomId = await roomOfAnnaAndBen(users);
      const name = `#one-${database}:test`;
      const path = `/directory/room/${enc(name)}`;
      await assertRefused(ben, 'PUT', path, { room_id: '!unknown:test' }, 404, 'M_NOT_FOUND');
      await assertRefused(ben, 'PUT', path, {}, 400, 'M_BAD_JSON');
      await assertRefused(
        ben,
        'PUT',
        `/directory/room/${enc('#x:elsewhere.example')}`,
        { room_id: roomId },
        400,
        'M_INVALID_PARAM',
      );
      await assertRefused(ben, 'PUT', '/directory/room/x', { room_id: roomId }, 400, 'M_INVALID_PARAM');
      await assertRefused(users.cleo, 'PUT', path, { room_id: roomId }, 403, 'M_FORBIDDEN');
      await anna.do('PUT', path, { room_id: roomId });
      await assertRefused(anna, 'PUT', path, { room_id: roomId }, 409, 'M_UNKNOWN');
      assert.deepEqual(await ben.do('GET', path), { room_id: roomId, servers: ['test'] });
      assert.deepEqual(await ben.do('GET', `/rooms/${enc(roomId)}/aliases`), { aliases: [name] });
      const earlierPath = `/_matrix/client/unstable/org.matrix.msc2432/rooms/${enc(roomId)}/aliases`;
      assert.deepEqual((await ben.request('GET', earlierPath, undefined)).body, { aliases: [name] });
      await users.cleo.do(
        'POST',
        `/join/${enc(name)}`,
        {},
        { server_name: 'test', via: ['a.example', 'test'] },
      );
      await assertRefused(
        anna,
        'PUT',
        `/rooms/${enc(roomId)}/state/m.room.canonical_alias`,
        { alias: '#no:test' },
        400,
        'M_BAD_ALIAS',
      );
      await assertRefused(
        anna,
        'PUT',
        `/rooms/${enc(roomId)}/state/m.room.canonical_alias`,
        { alias: 'no' },
        400,
        'M_INVALID_PARAM',
      );
      await anna.setState(roomId, 'm.room.canonical_alias', { alias: name, alt_aliases: [name] });
      await assertRefused(ben, 'DELETE', path, undefined, 403, 'M_FORBIDDEN');
      await anna.do('DELETE', path);
      const content = await anna.do('GET', `/rooms/${enc(roomId)}/state/m.room.canonical_alias`);
      assert.deepEqual(content, {}, 'the event does not contain the deleted alias');
      await assertRefused(anna, 'DELETE', path, undefined, 404, 'M_NOT_FOUND');
      await assertRefused(anna, 'GET', path, undefined, 404, 'M_NOT_FOUND');
    });
  });
}
