import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { SeveralServers, withoutRetries } from '../support/other-servers/several-servers.ts';
import { SignedRoom } from '../support/rooms/signed-room.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const v1 = '/_matrix/federation/v1';
const names = ['client.test', 'alias.test', 'inviter.test', 'space.test', 'member.test'] as const;

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('the servers that receive the requests of a join', () => {
    let several: SeveralServers;
    let anna: TestClient;
    let inviter: ScriptedServer;
    let room: SignedRoom;
    /** The servers that received a request to prepare a join, in order. */
    const requestedServers: string[] = [];
    before(async () => {
      several = new SeveralServers(kind);
      const a = await several.homeserver('a.test', withoutRetries);
      anna = await a.registerClient('anna');
      for (const name of names) {
        const server = await several.scripted(name);
        server.on(`GET ${v1}/make_join/`, () => {
          requestedServers.push(name);
          return [404, { errcode: 'M_NOT_FOUND', error: 'No such room' }];
        });
        if (name === 'inviter.test') inviter = server;
        if (name === 'alias.test') {
          const servers = ['alias.test', 'client.test'];
          server.on(`GET ${v1}/query/directory`, () => ({ room_id: room.roomId, servers }));
        }
      }
    });
    after(() => several.stop());
    beforeEach(async () => {
      requestedServers.splice(0);
      room = new SignedRoom('11', { serverName: 'inviter.test', key: inviter.key });
      const name = { type: 'm.room.name', state_key: '', sender: '@x:member.test', content: { name: 'X' } };
      const { eventId, pdu } = room.build({
        type: 'm.room.member',
        sender: room.creator,
        stateKey: anna.id,
        content: { membership: 'invite' },
      }).event;
      const path = `/_matrix/federation/v2/invite/${enc(room.roomId)}/${enc(eventId)}`;
      const body = { room_version: '11', event: pdu, invite_room_state: [name] };
      assert.equal((await inviter.request('a.test', 'PUT', path, body)).status, 200);
    });

    async function join(room: string, via: readonly string[] = []) {
      const { status, raw } = await anna.call('POST', `/join/${enc(room)}`, {}, { via });
      assert.equal(status, 404, raw);
      return requestedServers.splice(0);
    }

    it('sends make_join to the servers that the request names, then to those of the alias, of the invite and of a space of the user', async () => {
      assert.deepEqual(await join(room.roomId), ['inviter.test']);
      const space = await anna.createRoom({ creation_content: { type: 'm.space' } });
      await anna.setState(space, 'm.space.child', { via: ['space.test', 5, 'a.test'] }, room.roomId);
      assert.deepEqual(await join(room.roomId), ['inviter.test', 'space.test']);
      assert.deepEqual(await join(room.roomId, ['client.test']), [
        'client.test',
        'inviter.test',
        'space.test',
      ]);
      assert.deepEqual(await join('#room:alias.test', ['client.test']), [
        'client.test',
        'alias.test',
        'inviter.test',
        'space.test',
      ]);
      await anna.setState(space, 'm.space.child', {}, room.roomId);
      assert.deepEqual(await join(room.roomId), ['inviter.test']);
    });

    it('sends no request to the server in the room id when only the room id is known', async () => {
      assert.deepEqual(await join('!room:member.test'), []);
    });
  });
});
