import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { enc } from '../../../test/support/users/test-client.ts';
import { assertRefused, ServerOfThreeUsers } from './test/three-users.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`the endpoints that join rooms, on ${database}`, () => {
    const users = new ServerOfThreeUsers(database);

    const memberOf = (roomId: string) =>
      users.anna.do('GET', `/rooms/${enc(roomId)}/state/m.room.member/${enc(users.ben.id)}`);

    for (const path of [
      (roomId: string) => `/join/${enc(roomId)}`,
      (roomId: string) => `/rooms/${enc(roomId)}/join`,
    ]) {
      it(`puts unknown fields of the body of POST ${path('{roomId}')} into the membership event`, async () => {
        const { anna, ben } = users;
        const roomId = await anna.createRoom();
        await ben.do('POST', path(roomId), {
          reason: null,
          displayname: 'Ben of this room',
          'org.example.bot': { version: 1 },
          membership: 'ban',
          join_authorised_via_users_server: anna.id,
        });
        assert.deepEqual(await memberOf(roomId), {
          membership: 'join',
          displayname: 'Ben of this room',
          'org.example.bot': { version: 1 },
        });
        await ben.do('POST', path(roomId), {});
        assert.equal(
          (await memberOf(roomId))['displayname'],
          'Ben of this room',
          'a repeated join without content changes nothing',
        );
        await ben.do('POST', path(roomId), { 'org.example.bot': { version: 2 } });
        assert.deepEqual((await memberOf(roomId))['org.example.bot'], { version: 2 });
        await assertRefused(ben, 'POST', path(roomId), { 'org.example.bot': 1.5 }, 400, 'M_BAD_JSON');
      });
    }
  });
}
