import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('stripped state (invite_state, knock_state) in room version 12', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let anna: TestClient;
    let ben: TestClient;
    let albert: TestClient;
    before(async () => {
      ({ several, a, anna, ben } = await SeveralServers.pair(kind));
      albert = await a.registerClient('albert');
    });
    after(() => several.stop());

    it('contains the whole create event, for invited and knocking users of this server and of other servers', async () => {
      const roomId = await anna.createRoom({
        room_version: '12',
        initial_state: [{ type: 'm.room.join_rules', content: { join_rule: 'knock' } }],
        invite: [ben.id, albert.id],
      });
      const bea = await several.homeserver(`c${kind}.test`).then((c) => c.registerClient('bea'));
      const amy = await a.registerClient(`amy${kind}`);
      for (const user of [bea, amy]) await user.do('POST', `/knock/${enc(roomId)}`, {}, { via: 'a.test' });
      for (const user of [ben, albert, bea, amy]) {
        const { rooms } = await user.sync();
        const events =
          rooms?.invite?.[roomId]?.invite_state.events ?? rooms?.knock?.[roomId]?.knock_state.events ?? [];
        const create = events.find(({ type }) => type === 'm.room.create') ?? {};
        const fields = ['auth_events', 'depth', 'hashes', 'origin_server_ts', 'prev_events', 'signatures'];
        for (const field of fields) assert.ok(field in create, `${user.id}: ${field}`);
      }
    });
  });
});
