import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { manualClock } from './support/clocks/manual-clock.ts';
import { forSelectedDatabases } from './support/databases/databases.ts';
import { startTestServer, type TestServer } from './support/servers/server.ts';
import { enc, TestClient } from './support/users/test-client.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('reads after an answered write', () => {
    let server: TestServer;
    let anna: TestClient;
    let ben: TestClient;
    const rooms: string[] = [];
    before(async () => {
      // The clock stands still, so that on a slow machine the write does not give up waiting for its effects.
      server = await startTestServer({ database: open.kind, clock: manualClock() });
      [anna, ben] = [await TestClient.register(server, 'anna'), await TestClient.register(server, 'ben')];
      for (let count = 0; count < 10; count++) {
        const room = await anna.createRoom();
        await ben.join(room);
        rooms.push(room);
      }
    });
    after(() => server.stop());

    const member = (room: string, user: TestClient) =>
      anna.do('GET', `/rooms/${enc(room)}/state/m.room.member/${enc(user.id)}`);

    it('shows a changed profile in the member events of all rooms as soon as the change is answered', async () => {
      const path = `/profile/${enc(ben.id)}`;
      await ben.do('PUT', `${path}/displayname`, { displayname: 'Benny' });
      for (const room of rooms) assert.equal((await member(room, ben))['displayname'], 'Benny');
      await ben.do('PUT', `${path}/avatar_url`, { avatar_url: 'mxc://test/image' });
      for (const room of rooms) {
        const { displayname, avatar_url: avatar } = await member(room, ben);
        assert.deepEqual([displayname, avatar], ['Benny', 'mxc://test/image']);
      }
      await ben.do('DELETE', `${path}/displayname`);
      for (const room of rooms) assert.equal((await member(room, ben))['displayname'], undefined);
    });

    it('shows a renamed user and a new member in the user directory as soon as the change is answered', async () => {
      const find = async (term: string) =>
        (await anna.do('POST', '/user_directory/search', { search_term: term }))['results'];
      await ben.do('PUT', `/profile/${enc(ben.id)}/displayname`, { displayname: 'Renamed' });
      const found = [{ user_id: ben.id, display_name: 'Renamed', avatar_url: 'mxc://test/image' }];
      assert.deepEqual(await find('renamed'), found);
      const cleo = await TestClient.register(server, 'cleo');
      assert.deepEqual(await find('cleo'), []);
      await cleo.join(rooms[0]!);
      assert.deepEqual(await find('cleo'), [{ user_id: cleo.id, display_name: 'cleo' }]);
    });

    it('shows a deactivated user as having left all rooms as soon as the deactivation is answered', async () => {
      const auth = { type: 'm.login.password', user: ben.id, password: 'correct horse' };
      await ben.do('POST', '/account/deactivate', { auth });
      for (const room of rooms) assert.equal((await member(room, ben))['membership'], 'leave');
    });
  });
});
