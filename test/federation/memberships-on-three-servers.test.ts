import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { until } from '../support/other-servers/federation-sender.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('memberships in a room of three servers', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let b: FederatedServer;
    let c: FederatedServer;
    let anna: TestClient;
    let ben: TestClient;
    let cleo: TestClient;
    before(async () => {
      const opened = await SeveralServers.open(kind, ['a.test', 'b.test', 'c.test']);
      several = opened.several;
      [a, b, c] = opened.servers;
      anna = await a.registerClient('anna');
      ben = await b.registerClient('ben');
      cleo = await c.registerClient('cleo');
    });
    after(() => several.stop());

    const membership = async (viewer: TestClient, roomId: string, user: TestClient) => {
      const answer = await viewer.call('GET', `/rooms/${enc(roomId)}/state/m.room.member/${enc(user.id)}`);
      return answer.status === 200 ? answer.body['membership'] : undefined;
    };
    const waitForMembership = (viewer: TestClient, roomId: string, user: TestClient, expected: string) =>
      until(
        async () => (await membership(viewer, roomId, user)) === expected,
        `${viewer.id} sees ${expected}`,
      );
    const joinVia = (user: TestClient, roomId: string, server: FederatedServer) =>
      user.do('POST', `/join/${enc(roomId)}`, {}, { via: server.name });
    const moderate = (user: TestClient, action: string, roomId: string, target: TestClient) =>
      user.do('POST', `/rooms/${enc(roomId)}/${action}`, { user_id: target.id });

    it('shows joins and leaves on all servers of the room', async () => {
      const roomId = await anna.createRoom();
      await joinVia(ben, roomId, a);
      await joinVia(cleo, roomId, a);
      await waitForMembership(ben, roomId, cleo, 'join');
      await waitForMembership(cleo, roomId, ben, 'join');
      await cleo.leave(roomId);
      for (const viewer of [anna, ben]) await waitForMembership(viewer, roomId, cleo, 'leave');
      await joinVia(cleo, roomId, b);
      for (const viewer of [anna, ben]) await waitForMembership(viewer, roomId, cleo, 'join');
    });

    it('sends invites, knocks and their ends to all servers', async () => {
      const roomId = await anna.createRoom({
        preset: 'private_chat',
        initial_state: [{ type: 'm.room.join_rules', content: { join_rule: 'knock' } }],
      });
      await moderate(anna, 'invite', roomId, ben);
      await ben.join(roomId);
      await cleo.do('POST', `/knock/${enc(roomId)}`, {}, { via: 'a.test' });
      await waitForMembership(ben, roomId, cleo, 'knock');
      await cleo.leave(roomId);
      await waitForMembership(ben, roomId, cleo, 'leave');
      await moderate(anna, 'invite', roomId, cleo);
      await waitForMembership(ben, roomId, cleo, 'invite');
      await cleo.leave(roomId);
      await waitForMembership(ben, roomId, cleo, 'leave');
    });

    it('enforces kicks, bans and unbans on all servers', async () => {
      const roomId = await anna.createRoom();
      await joinVia(ben, roomId, a);
      await joinVia(cleo, roomId, a);
      await waitForMembership(ben, roomId, cleo, 'join');
      await moderate(anna, 'kick', roomId, cleo);
      await waitForMembership(ben, roomId, cleo, 'leave');
      await until(async () => {
        const { joined_rooms: rooms } = await cleo.do('GET', '/joined_rooms');
        return !(rooms as string[]).includes(roomId);
      });
      const { rooms } = await cleo.sync();
      assert.equal(rooms?.join?.[roomId], undefined);
      await joinVia(cleo, roomId, a);
      await waitForMembership(ben, roomId, cleo, 'join');
      await moderate(anna, 'ban', roomId, cleo);
      await waitForMembership(ben, roomId, cleo, 'ban');
      await until(async () => {
        const { joined_rooms: joined } = await cleo.do('GET', '/joined_rooms');
        return !(joined as string[]).includes(roomId);
      });
      for (const server of [a, b]) {
        const { status } = await cleo.call('POST', `/join/${enc(roomId)}`, {}, { via: server.name });
        assert.equal(status, 403);
      }
      await moderate(anna, 'unban', roomId, cleo);
      await waitForMembership(ben, roomId, cleo, 'leave');
      await joinVia(cleo, roomId, b);
      await waitForMembership(anna, roomId, cleo, 'join');
      const { status } = await ben.call('POST', `/rooms/${enc(roomId)}/kick`, { user_id: cleo.id });
      assert.equal(status, 403);
    });

    it('lets a user forget a remote room and join it again', async () => {
      const roomId = await anna.createRoom();
      await joinVia(ben, roomId, a);
      await ben.leave(roomId);
      await ben.membership('forget', roomId);
      const { rooms } = await ben.sync(undefined, { filter: { room: { include_leave: true } } });
      assert.equal(rooms?.leave?.[roomId], undefined);
      await joinVia(ben, roomId, a);
      await until(async () => (await ben.sync()).rooms?.join?.[roomId] !== undefined);
    });
  });
});
