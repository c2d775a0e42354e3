import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { selectedDatabases } from '../support/databases/databases.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`queries between two servers, on ${database}`, () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let b: FederatedServer;
    let alice: TestClient;
    let tess: TestClient;
    before(async () => {
      const lists = { allow_public_rooms_over_federation: true, room_list_publication_rules: [{}] };
      const opened = await SeveralServers.open(database, ['here.test', 'there.test'], {
        config: { directory: lists },
      });
      several = opened.several;
      [a, b] = opened.servers;
      [alice, tess] = [await a.registerClient('alice'), await b.registerClient('tess')];
    });
    after(() => several.stop());

    it('returns remote profiles, aliases, public rooms, summaries and space hierarchies', async () => {
      assert.deepEqual(await alice.do('GET', `/profile/${enc(tess.id)}`), { displayname: 'tess' });
      const garden = await tess.createRoom({
        preset: 'public_chat',
        visibility: 'public',
        room_alias_name: 'garden',
        name: 'Garden',
        creation_content: { type: 'm.space' },
      });
      const pond = await tess.createRoom({ preset: 'public_chat', name: 'Pond' });
      const shed = await tess.createRoom({ preset: 'private_chat', name: 'Shed' });
      for (const child of [pond, shed]) {
        await tess.setState(garden, 'm.space.child', { via: ['there.test'] }, child);
      }
      const alias = await alice.do('GET', `/directory/room/${enc('#garden:there.test')}`);
      assert.deepEqual(alias, { room_id: garden, servers: ['there.test'] });
      const list = await alice.do('GET', '/publicRooms', undefined, { server: 'there.test' });
      assert.deepEqual(
        (list['chunk'] as { name: string }[]).map(({ name }) => name),
        ['Garden'],
      );
      const summary = await alice.request(
        'GET',
        `/_matrix/client/v1/room_summary/${enc('#garden:there.test')}`,
        undefined,
      );
      assert.deepEqual([summary.body['name'], summary.body['num_joined_members']], ['Garden', 1]);
      const root = await alice.createRoom({ preset: 'public_chat', creation_content: { type: 'm.space' } });
      await alice.setState(root, 'm.space.child', { via: ['there.test'] }, garden);
      const tree = await alice.request('GET', `/_matrix/client/v1/rooms/${enc(root)}/hierarchy`, undefined);
      const names = (tree.body['rooms'] as { name?: string }[]).map(({ name }) => name);
      assert.deepEqual(names, [undefined, 'Garden', 'Pond'], 'the private room is left out');
    });

    it('accepts canonical aliases that point to the room on either server, and refuses others', async () => {
      const roomId = await alice.createRoom({ preset: 'public_chat', room_alias_name: 'ours' });
      await tess.do('POST', `/join/${enc('#ours:here.test')}`, {});
      await tess.do('PUT', `/directory/room/${enc('#theirs:there.test')}`, { room_id: roomId });
      await tess.createRoom({ preset: 'public_chat', room_alias_name: 'other' });
      const path = `/rooms/${enc(roomId)}/state/m.room.canonical_alias`;
      for (const badAlias of ['#other:there.test', '#none:there.test', '#none:nowhere.test']) {
        const { status, body } = await alice.call('PUT', path, { alias: badAlias });
        assert.deepEqual([status, body['errcode']], [400, 'M_BAD_ALIAS'], badAlias);
      }
      const canonicalAlias = { alias: '#ours:here.test', alt_aliases: ['#theirs:there.test'] };
      await alice.do('PUT', path, canonicalAlias);
      assert.deepEqual(await alice.do('GET', path), canonicalAlias);
    });

    it('returns the history of a remote room as far as the history visibility allows', async () => {
      const roomId = await tess.createRoom({
        preset: 'public_chat',
        initial_state: [{ type: 'm.room.history_visibility', content: { history_visibility: 'joined' } }],
      });
      await tess.say(roomId, 'before');
      await alice.do('POST', `/join/${enc(roomId)}`, {}, { via: 'there.test' });
      await alice.say(roomId, 'after');
      const { chunk } = await alice.do('GET', `/rooms/${enc(roomId)}/messages`, undefined, {
        dir: 'b',
        limit: 50,
      });
      const raw = JSON.stringify(chunk);
      assert.ok(raw.includes('after') && !raw.includes('before'));
    });
  });
}
