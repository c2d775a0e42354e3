import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type JsonObject, receivePdu } from '../../src/protocol/index.ts';
import { unhurriedClock } from '../support/clocks/unhurried-clock.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { until } from '../support/other-servers/federation-sender.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import {
  type FederatedServer,
  SeveralServers,
  withoutRetries,
} from '../support/other-servers/several-servers.ts';
import { SignedRoom } from '../support/rooms/signed-room.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const v1 = '/_matrix/federation/v1';
const v2 = '/_matrix/federation/v2';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('the rejection of an invite', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let inviting: ScriptedServer;
    let stranger: ScriptedServer;
    let anna: TestClient;
    let room: SignedRoom;
    const reachable = new Set<ScriptedServer>();
    before(async () => {
      several = new SeveralServers(kind);
      a = await several.homeserver('a.test', { ...withoutRetries, clock: unhurriedClock });
      inviting = await several.scripted('host.test');
      stranger = await several.scripted('stranger.test');
      anna = await a.registerClient('anna');
    });
    after(() => several.stop());
    beforeEach(() => {
      room = new SignedRoom('11', { serverName: 'host.test', key: inviting.key });
      for (const server of [inviting, stranger]) {
        reachable.add(server);
        server.receivedRequests.splice(0);
        const ifReachable = (answer: () => JsonObject) => () =>
          reachable.has(server) ? answer() : ([500, {}] as const);
        const template = () => room.membershipTemplate(anna.id, 'leave');
        server.on(`GET ${v1}/make_leave/`, ifReachable(template));
        server.on(
          `PUT ${v2}/send_leave/`,
          ifReachable(() => ({})),
        );
      }
    });

    async function invite(server: ScriptedServer) {
      const otherRoom = new SignedRoom('11', { serverName: server.name, key: server.key });
      otherRoom.roomId = room.roomId;
      const draft = { type: 'm.room.member', stateKey: anna.id, content: { membership: 'invite' } };
      const { event } = (server === inviting ? room : otherRoom).build({
        ...draft,
        sender: `@creator:${server.name}`,
      });
      const path = `${v2}/invite/${enc(room.roomId)}/${enc(event.eventId)}`;
      const body = { room_version: '11', event: event.pdu, invite_room_state: [] };
      const answer = await server.request('a.test', 'PUT', path, body);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
    }
    const leave = () => anna.do('POST', `/rooms/${enc(room.roomId)}/leave`, { reason: 'no' });
    const isInvited = async () => (await anna.sync()).rooms?.invite?.[room.roomId] !== undefined;
    const receivedLeaves = (server: ScriptedServer) =>
      server.receivedRequests
        .filter(({ path }) => path.startsWith(`${v2}/send_leave/`))
        .map(({ body }) => receivePdu(body, room.version).event.content);
    /** Sends a request of `server` to the homeserver, which learns from it that `server` is reachable again. */
    const sendRequest = (server: ScriptedServer) => server.request('a.test', 'GET', `${v1}/publicRooms`);

    it('sends the rejection once the inviting server is reachable again, also after a restart', async () => {
      await invite(inviting);
      reachable.delete(inviting);
      await leave();
      assert.equal(await isInvited(), false);
      await a.restart();
      assert.deepEqual(receivedLeaves(inviting), []);
      reachable.add(inviting);
      await sendRequest(inviting);
      await until(() => receivedLeaves(inviting).length > 0);
      assert.deepEqual(receivedLeaves(inviting), [{ reason: 'no', membership: 'leave' }]);
      assert.equal(await isInvited(), false);
    });

    it('sends the rejection to every server that has sent an invite to the room', async () => {
      await invite(inviting);
      for (let count = 0; count < 25; count++) await invite(stranger);
      await leave();
      assert.deepEqual([receivedLeaves(stranger).length, receivedLeaves(inviting).length], [1, 1]);
      assert.equal(await isInvited(), false);
    });

    it('sends the rejection to the remaining inviting servers later when only one was reachable', async () => {
      await invite(inviting);
      await invite(stranger);
      reachable.delete(inviting);
      await leave();
      assert.deepEqual([receivedLeaves(stranger).length, receivedLeaves(inviting).length], [1, 0]);
      reachable.add(inviting);
      await sendRequest(inviting);
      await until(() => receivedLeaves(inviting).length > 0);
      assert.equal(receivedLeaves(stranger).length, 1);
    });
  });
});
