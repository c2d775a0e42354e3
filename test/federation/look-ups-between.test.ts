import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { serverDatabases } from '../support/databases/databases.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

for (const database of serverDatabases(import.meta.url)) {
  describe(`two servers that look things up at each other, on ${database}`, () => {
    let several: SeveralServers;
    let here: FederatedServer;
    let there: FederatedServer;
    let alice: TestClient;
    let tess: TestClient;
    before(async () => {
      const lists = { allow_public_rooms_over_federation: true, room_list_publication_rules: [{}] };
      const opened = await SeveralServers.open(database, ['here.test', 'there.test'], {
        config: { directory: lists },
      });
      several = opened.several;
      [here, there] = opened.servers;
      [alice, tess] = [await here.registerClient('alice'), await there.registerClient('tess')];
    });
    after(() => several.stop());

    it('find users, rooms and spaces', async () => {
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
      const summary = await alice.ask(
        'GET',
        `/_matrix/client/v1/room_summary/${enc('#garden:there.test')}`,
        undefined,
      );
      assert.deepEqual([summary.body['name'], summary.body['num_joined_members']], ['Garden', 1]);
      const root = await alice.createRoom({ preset: 'public_chat', creation_content: { type: 'm.space' } });
      await alice.setState(root, 'm.space.child', { via: ['there.test'] }, garden);
      const tree = await alice.ask('GET', `/_matrix/client/v1/rooms/${enc(root)}/hierarchy`, undefined);
      const names = (tree.body['rooms'] as { name?: string }[]).map(({ name }) => name);
      assert.deepEqual(names, [undefined, 'Garden', 'Pond'], 'and not what nobody here may enter');
    });

    it('name a room by the aliases that either has for it, and by no others', async () => {
      const roomId = await alice.createRoom({ preset: 'public_chat', room_alias_name: 'ours' });
      await tess.do('POST', `/join/${enc('#ours:here.test')}`, {});
      await tess.do('PUT', `/directory/room/${enc('#theirs:there.test')}`, { room_id: roomId });
      await tess.createRoom({ preset: 'public_chat', room_alias_name: 'other' });
      const path = `/rooms/${enc(roomId)}/state/m.room.canonical_alias`;
      for (const wrong of ['#other:there.test', '#none:there.test', '#none:nowhere.test']) {
        const { status, body } = await alice.call('PUT', path, { alias: wrong });
        assert.deepEqual([status, body['errcode']], [400, 'M_BAD_ALIAS'], wrong);
      }
      const named = { alias: '#ours:here.test', alt_aliases: ['#theirs:there.test'] };
      await alice.do('PUT', path, named);
      assert.deepEqual(await alice.do('GET', path), named);
    });

    it('give each other what has been said in a room, as far as it may be seen', async () => {
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
