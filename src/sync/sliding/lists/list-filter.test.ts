import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { selectedDatabases } from '../../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../../test/support/servers/server.ts';
import { SlidingClient } from '../../../../test/support/users/sliding-client.ts';
import { TestClient } from '../../../../test/support/users/test-client.ts';
import { oneList } from '../test/one-list.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`filters of lists in sliding sync, on ${database}`, () => {
    let server: TestServer;
    let anna: TestClient;
    const rooms: Record<string, string> = {};
    before(async () => {
      server = await startTestServer({ database });
      anna = await TestClient.register(server, 'anna');
      const ben = await TestClient.register(server, 'ben');
      rooms['plain'] = await anna.createRoom({ name: 'The Plain Room' });
      rooms['secret'] = await anna.createRoom({
        initial_state: [{ type: 'm.room.encryption', content: { algorithm: 'm.megolm.v1.aes-sha2' } }],
      });
      rooms['space'] = await anna.createRoom({ creation_content: { type: 'm.space' } });
      rooms['direct'] = await anna.createRoom();
      rooms['invite'] = await ben.createRoom({ invite: [anna.id] });
      await anna.setState(rooms['space'], 'm.space.child', { via: ['test'] }, rooms['plain']);
      await anna.setState(rooms['space'], 'm.space.child', {}, rooms['secret']);
      const user = `/user/${encodeURIComponent(anna.id)}`;
      await anna.do('PUT', `${user}/account_data/m.direct`, { [ben.id]: [rooms['direct']] });
      const tag = `${user}/rooms/${encodeURIComponent(rooms['secret'])}/tags/m.favourite`;
      await anna.do('PUT', tag, { order: 0.5 });
    });
    after(() => server.stop());

    const all = ['plain', 'secret', 'space', 'direct', 'invite'];
    type Filters = Readonly<Record<string, unknown>> & { spaces?: readonly string[] };
    /** In `spaces` and in the expected rooms, a room is named by its key in `rooms`. */
    const cases: [filters: Filters, expected: string[]][] = [
      [{}, all],
      [{ is_dm: true }, ['direct']],
      [{ is_dm: false }, all.filter((name) => name !== 'direct')],
      [{ is_encrypted: true }, ['secret']],
      [{ is_encrypted: false }, all.filter((name) => name !== 'secret')],
      [{ is_invite: true }, ['invite']],
      [{ is_invite: false }, all.filter((name) => name !== 'invite')],
      [{ room_types: ['m.space'] }, ['space']],
      [{ room_types: ['m.space', null], not_room_types: [null] }, ['space']],
      [{ not_room_types: ['m.space'], is_invite: false, is_dm: null }, ['plain', 'secret', 'direct']],
      [{ room_name_like: 'pLAin' }, ['plain']],
      [{ tags: ['m.favourite', 'other'] }, ['secret']],
      [{ tags: ['m.favourite'], not_tags: ['m.favourite'] }, []],
      [{ not_tags: ['m.favourite'] }, all.filter((name) => name !== 'secret')],
      [{ spaces: ['space'] }, ['plain']],
      [{ spaces: ['unknown'] }, []],
    ];
    for (const [filters, expected] of cases) {
      it(`${JSON.stringify(filters)} selects ${expected.join(', ') || 'nothing'}`, async () => {
        const spaces = filters.spaces?.map((name) => rooms[name] ?? '!unknown:test');
        const client = new SlidingClient(anna, JSON.stringify(filters).slice(0, 100));
        const answer = await client.sync(oneList({ filters: { ...filters, ...(spaces && { spaces }) } }));
        const names = all.filter((name) => answer.rooms[rooms[name]!]);
        assert.deepEqual(names, expected);
        assert.equal(answer.lists['all']?.count, expected.length);
      });
    }
  });
}
