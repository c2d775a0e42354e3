import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type JsonObject, receivePdu } from '../../src/protocol/index.ts';
import { forServerDatabases } from '../support/databases/databases.ts';
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

forServerDatabases(import.meta.url, ({ kind }) => {
  describe('turning an invite down', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let host: ScriptedServer;
    let stranger: ScriptedServer;
    let anna: TestClient;
    let room: SignedRoom;
    const isUp = new Set<ScriptedServer>();
    before(async () => {
      several = new SeveralServers(kind);
      a = await several.homeserver('a.test', withoutRetries);
      host = await several.scripted('host.test');
      stranger = await several.scripted('stranger.test');
      anna = await a.registerClient('anna');
    });
    after(() => several.stop());
    beforeEach(() => {
      room = new SignedRoom('11', { serverName: 'host.test', key: host.key });
      for (const server of [host, stranger]) {
        isUp.add(server);
        server.asked.splice(0);
        const ifUp = (answer: () => JsonObject) => () => (isUp.has(server) ? answer() : ([500, {}] as const));
        const template = () => room.membershipTemplate(anna.id, 'leave');
        server.on(`GET ${v1}/make_leave/`, ifUp(template));
        server.on(
          `PUT ${v2}/send_leave/`,
          ifUp(() => ({})),
        );
      }
    });

    async function invite(by: ScriptedServer) {
      const other = new SignedRoom('11', { serverName: by.name, key: by.key });
      other.roomId = room.roomId;
      const draft = { type: 'm.room.member', stateKey: anna.id, content: { membership: 'invite' } };
      const { event } = (by === host ? room : other).build({ ...draft, sender: `@creator:${by.name}` });
      const path = `${v2}/invite/${enc(room.roomId)}/${enc(event.eventId)}`;
      const body = { room_version: '11', event: event.pdu, invite_room_state: [] };
      const answer = await by.ask('a.test', 'PUT', path, body);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
    }
    const leave = () => anna.do('POST', `/rooms/${enc(room.roomId)}/leave`, { reason: 'no' });
    const isInvited = async () => (await anna.sync()).rooms?.invite?.[room.roomId] !== undefined;
    const told = (server: ScriptedServer) =>
      server.asked
        .filter(({ path }) => path.startsWith(`${v2}/send_leave/`))
        .map(({ body }) => receivePdu(body, room.version).event.content);
    const signOfLife = (server: ScriptedServer) => server.ask('a.test', 'GET', `${v1}/publicRooms`);

    it('is heard by a server that could not be reached, when it is back, though this one was restarted', async () => {
      await invite(host);
      isUp.delete(host);
      await leave();
      assert.equal(await isInvited(), false);
      await a.restart();
      assert.deepEqual(told(host), []);
      isUp.add(host);
      await signOfLife(host);
      await until(() => told(host).length > 0);
      assert.deepEqual(told(host), [{ reason: 'no', membership: 'leave' }]);
      assert.equal(await isInvited(), false);
    });

    it('is heard by all who have invited, also when the last of them has no business with the room', async () => {
      await invite(host);
      for (let count = 0; count < 25; count++) await invite(stranger);
      await leave();
      assert.deepEqual([told(stranger).length, told(host).length], [1, 1]);
      assert.equal(await isInvited(), false);
    });

    it('is heard later by those who were away, when others have taken it', async () => {
      await invite(host);
      await invite(stranger);
      isUp.delete(host);
      await leave();
      assert.deepEqual([told(stranger).length, told(host).length], [1, 0]);
      isUp.add(host);
      await signOfLife(host);
      await until(() => told(host).length > 0);
      assert.equal(told(stranger).length, 1);
    });
  });
});
