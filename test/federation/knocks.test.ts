import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('a knock on a room of another server', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let b: FederatedServer;
    let anna: TestClient;
    let ben: TestClient;
    before(async () => {
      ({ several, a, b, anna, ben } = await SeveralServers.pair(kind));
    });
    after(() => several.stop());

    const createRoom = (version: string, rule = 'knock') =>
      anna.createRoom({
        preset: 'private_chat',
        room_version: version,
        name: 'Door',
        initial_state: [{ type: 'm.room.join_rules', content: { join_rule: rule } }],
      });
    const knock = (roomId: string) =>
      ben.call('POST', `/knock/${enc(roomId)}`, { reason: 'please' }, { via: 'a.test' });
    const membershipEvent = async (roomId: string) =>
      anna.do('GET', `/rooms/${enc(roomId)}/state/m.room.member/${enc(ben.id)}`);

    for (const version of ['7', '10', '11', '12']) {
      it(`lets a remote user knock, receive an invite and join, in room version ${version}`, async () => {
        const roomId = await createRoom(version);
        const { status, raw } = await knock(roomId);
        assert.equal(status, 200, raw);
        const member = await membershipEvent(roomId);
        assert.deepEqual([member['membership'], member['reason']], ['knock', 'please']);
        const knockState = (await ben.sync()).rooms?.knock?.[roomId]?.knock_state.events ?? [];
        assert.ok(knockState.some(({ content }) => content['name'] === 'Door'));
        assert.ok(knockState.some(({ type }) => type === 'm.room.create'));
        await anna.do('POST', `/rooms/${enc(roomId)}/invite`, { user_id: ben.id });
        const { rooms } = await ben.sync();
        assert.ok(rooms?.invite?.[roomId]);
        assert.equal(rooms?.knock?.[roomId], undefined);
        await ben.join(roomId);
        assert.equal((await membershipEvent(roomId))['membership'], 'join');
      });
    }

    it('withdraws a knock by a leave after a restart', async () => {
      const roomId = await createRoom('10');
      await knock(roomId);
      await b.restart();
      await ben.leave(roomId);
      assert.equal((await membershipEvent(roomId))['membership'], 'leave');
      assert.equal((await ben.sync()).rooms?.knock?.[roomId], undefined);
    });

    it('refuses a knock with 403 if the join rule or the room version forbids it, with 404 for an unknown room, and with 502 if the server is unreachable', async () => {
      // Room version 6 has no knocks.
      for (const version of ['10', '6']) {
        const { status, body } = await knock(await createRoom(version, 'invite'));
        assert.deepEqual([status, body['errcode']], [403, 'M_FORBIDDEN']);
      }
      const unknown = await knock('!unknown:a.test');
      assert.deepEqual([unknown.status, unknown.body['errcode']], [404, 'M_NOT_FOUND']);
      a.disconnect();
      assert.equal((await knock('!any:a.test')).status, 502);
      a.reconnect();
    });
  });
});
