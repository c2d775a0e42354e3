import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { SeveralServers } from '../support/other-servers/several-servers.ts';
import type { ConfigurationOverrides } from '../support/servers/server.ts';
import { registerAdmin } from '../support/users/register-admin.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const twoRequests = { per_second: 0, burst_count: 2 };

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('limits on joins and invites across servers', () => {
    let several: SeveralServers;
    afterEach(() => several.stop());

    /** Starts a server without limits, with the user `anna`, and a server with this configuration, with the user `ben`. */
    async function open(config: ConfigurationOverrides) {
      several = new SeveralServers(kind);
      const a = await several.homeserver('a.test');
      const b = await several.homeserver('b.test', { config });
      return { a, b, anna: await a.registerClient('anna'), ben: await b.registerClient('ben') };
    }

    const join = (user: TestClient, roomId: string, via = ['a.test', 'b.test']) =>
      user.call('POST', `/join/${enc(roomId)}`, {}, { via });
    const invite = (user: TestClient, roomId: string, userId: string) =>
      user.call('POST', `/rooms/${enc(roomId)}/invite`, { user_id: userId });
    const isJoined = async (user: TestClient, roomId: string) => {
      const { joined_rooms: rooms } = await user.do('GET', '/joined_rooms');
      return (rooms as string[]).includes(roomId);
    };

    it('refuses to join a remote room that is too complex [option: limit_remote_rooms.enabled, limit_remote_rooms.complexity, limit_remote_rooms.complexity_error, limit_remote_rooms.admins_can_join]', async () => {
      const limit = {
        enabled: true,
        complexity: 0.02,
        complexity_error: 'Far too much',
        admins_can_join: true,
      };
      const { anna, ben, b } = await open({ rooms: { limit_remote_rooms: limit } });
      const simple = await anna.createRoom();
      assert.equal((await join(ben, simple)).status, 200);
      const complex = await anna.createRoom();
      for (let i = 0; i < 10; i++) await anna.setState(complex, 'org.example.entry', { i }, String(i));
      const refused = await join(ben, complex);
      assert.deepEqual(
        [refused.status, refused.body['errcode'], refused.body['error']],
        [400, 'M_RESOURCE_LIMIT_EXCEEDED', 'Far too much'],
      );
      const { joined } = await anna.do('GET', `/rooms/${enc(complex)}/joined_members`);
      assert.deepEqual(Object.keys(joined as object), [anna.id]);
      // The other server does not reveal the complexity of a private room, so this server measures it after the join.
      const secret = await anna.createRoom({ preset: 'private_chat' });
      for (let i = 0; i < 10; i++) await anna.setState(secret, 'org.example.entry', { i }, String(i));
      await invite(anna, secret, ben.id);
      assert.equal((await join(ben, secret)).body['errcode'], 'M_RESOURCE_LIMIT_EXCEEDED');
      assert.equal(await isJoined(ben, secret), false);
      const admin = await registerAdmin(b);
      assert.equal((await join(admin, complex)).status, 200);
    });

    it('limits the rate of joins to rooms that the server is not in [option: rc_joins.remote]', async () => {
      const { anna, ben } = await open({ rateLimits: { rc_joins: { remote: twoRequests } } });
      const rooms = await Promise.all([1, 2, 3].map(() => anna.createRoom()));
      const statuses = [];
      for (const roomId of rooms) statuses.push((await join(ben, roomId)).status);
      assert.deepEqual(statuses, [200, 200, 429]);
      const localRoom = await ben.createRoom();
      assert.equal((await join(ben, localRoom)).status, 200);
    });

    it('counts joins of remote users against the limit per room [option: rc_joins_per_room]', async () => {
      const { b, anna, ben } = await open({ rateLimits: { rc_joins_per_room: twoRequests } });
      const roomId = await ben.createRoom();
      const albert = await several.homeserver('c.test').then((c) => c.registerClient('albert'));
      assert.equal((await join(anna, roomId)).status, 200);
      assert.equal((await join(albert, roomId, ['b.test'])).status, 200);
      const benno = await b.registerClient('benno');
      assert.equal((await join(benno, roomId)).status, 429);
    });

    it('limits the rate of invites that a user receives from remote servers [option: rc_invites.per_user]', async () => {
      const { anna, ben } = await open({ rateLimits: { rc_invites: { per_user: twoRequests } } });
      const statuses = [];
      for (let i = 0; i < 3; i++) {
        statuses.push((await invite(anna, await anna.createRoom(), ben.id)).status);
      }
      assert.deepEqual(statuses, [200, 200, 429]);
    });

    it('limits the rate of invites from remote servers to one room [option: rc_invites.per_room]', async () => {
      const { b, anna, ben } = await open({ rateLimits: { rc_invites: { per_room: twoRequests } } });
      const roomId = await anna.createRoom();
      const [benno, bert] = [await b.registerClient('benno'), await b.registerClient('bert')];
      const statuses = [];
      for (const { id } of [ben, benno, bert]) statuses.push((await invite(anna, roomId, id)).status);
      assert.deepEqual(statuses, [200, 200, 429]);
    });

    it('refuses invites from remote users when non-admin invites are blocked [option: block_non_admin_invites]', async () => {
      const { anna, ben } = await open({ rooms: { block_non_admin_invites: true } });
      const { status, body } = await invite(anna, await anna.createRoom(), ben.id);
      assert.deepEqual([status, body['errcode']], [403, 'M_FORBIDDEN']);
    });

    it('refuses remote invites to a user whose m.invite_permission_config blocks them', async () => {
      const { anna, ben } = await open({});
      await ben.do('PUT', `/user/${enc(ben.id)}/account_data/m.invite_permission_config`, {
        default_action: 'block',
      });
      const { status, body } = await invite(anna, await anna.createRoom(), ben.id);
      assert.deepEqual([status, body['errcode']], [403, 'M_INVITE_BLOCKED']);
    });
  });
});
