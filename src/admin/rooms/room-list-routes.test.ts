import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';

interface Listed {
  readonly room_id: string;
  readonly name: string | null;
  readonly [field: string]: unknown;
}

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('GET /rooms of the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    let anna: TestClient;
    let ben: TestClient;
    let [lake, hill, vale] = ['', '', ''];
    before(async () => {
      server = await startTestServer({
        database: kind,
        config: { directory: { room_list_publication_rules: [{ action: 'allow' }] } },
      });
      admin = await Administration.open(server);
      anna = await TestClient.register(server, 'anna');
      ben = await TestClient.register(server, 'ben');
      lake = await anna.createRoom({ name: 'Lake listed', visibility: 'public', preset: 'public_chat' });
      hill = await anna.createRoom({ name: 'Hill listed 100%', room_alias_name: 'summit' });
      vale = await ben.createRoom({ name: 'Vale listed', creation_content: { type: 'm.space' } });
      await ben.join(lake);
      await ben.leave(vale);
    });
    after(() => server.stop());

    const list = async (query: Record<string, string | number | boolean> = {}) =>
      (await admin.do('GET', '/v1/rooms', undefined, query)) as unknown as {
        rooms: Listed[];
        total_rooms: number;
        offset: number;
        next_batch?: number;
        prev_batch?: number;
      };
    const names = async (query: Parameters<typeof list>[0] = {}) =>
      (await list({ search_term: 'listed', ...query })).rooms.map(({ name }) => name);

    it('lists rooms, sorted by name, with all fields', async () => {
      const { rooms, total_rooms, offset } = await list({ search_term: 'listed' });
      assert.deepEqual([total_rooms, offset], [3, 0]);
      const { version, state_events, ...found } = rooms[1]!;
      assert.match(String(version), /^\d+$/);
      assert.ok(Number(state_events) > 5);
      assert.deepEqual(found, {
        room_id: lake,
        name: 'Lake listed',
        canonical_alias: null,
        joined_members: 2,
        joined_local_members: 2,
        creator: anna.id,
        encryption: null,
        federatable: true,
        public: true,
        join_rules: 'public',
        guest_access: 'forbidden',
        history_visibility: 'shared',
        room_type: null,
      });
      assert.deepEqual([rooms[0]!['canonical_alias'], rooms[2]!['room_type']], ['#summit:test', 'm.space']);
    });

    it('filters rooms by name, alias, id, publication and emptiness', async () => {
      assert.deepEqual(await names({ search_term: '100%' }), ['Hill listed 100%']);
      assert.deepEqual(await names({ search_term: 'SUMM' }), ['Hill listed 100%']);
      assert.deepEqual(await names({ search_term: vale.slice(1, 8) }), ['Vale listed']);
      assert.deepEqual(await names({ public_rooms: true }), ['Lake listed']);
      assert.deepEqual(await names({ public_rooms: false }), ['Hill listed 100%', 'Vale listed']);
      assert.deepEqual(await names({ empty_rooms: true }), ['Vale listed']);
      assert.deepEqual(await names({ empty_rooms: false }), ['Hill listed 100%', 'Lake listed']);
      assert.deepEqual(await admin.refused('GET', '/v1/rooms', undefined, { order_by: 'x' }), [
        400,
        'M_INVALID_PARAM',
      ]);
    });

    it('orders rooms by each field in both directions, and continues each page after the last room of the previous page', async () => {
      for (const order_by of [
        'name',
        'alphabetical',
        'size',
        'canonical_alias',
        'joined_members',
        'joined_local_members',
        'version',
        'creator',
        'encryption',
        'federatable',
        'public',
        'join_rules',
        'guest_access',
        'history_visibility',
        'state_events',
      ]) {
        for (const dir of ['f', 'b']) {
          const whole = await names({ order_by, dir });
          const paged: (string | null)[] = [];
          for (let from = 0; ; ) {
            const page = await list({ search_term: 'listed', order_by, dir, limit: 2, from });
            assert.equal(page.prev_batch, from === 0 ? undefined : from - 2);
            paged.push(...page.rooms.map(({ name }) => name));
            if (page.next_batch === undefined) break;
            from = page.next_batch;
          }
          assert.deepEqual(paged, whole, `${order_by} ${dir}`);
          if (dir === 'b') assert.deepEqual(whole.toReversed(), await names({ order_by }), order_by);
        }
      }
      assert.equal((await names({ order_by: 'joined_members' }))[0], 'Lake listed');
      assert.equal((await names({ order_by: 'joined_members', dir: 'b' }))[0], 'Vale listed');
      const first = await list({ search_term: 'listed', limit: 1 });
      const added = await anna.createRoom({ name: 'Beach listed' });
      const second = await list({ search_term: 'listed', limit: 1, from: first.next_batch! });
      assert.deepEqual([first.rooms[0]!.room_id, second.rooms[0]!.room_id], [hill, lake]);
      await admin.do('DELETE', `/v1/rooms/${enc(added)}`, {});
    });
  });
});
