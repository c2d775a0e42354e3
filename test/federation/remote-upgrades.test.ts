import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { until } from '../support/other-servers/federation-sender.ts';
import { SeveralServers } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const allowRule = { user_id: '*', alias: '*', room_id: '*', action: 'allow' as const };

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('rooms of several servers that are upgraded', () => {
    let several: SeveralServers;
    let anna: TestClient;
    let ben: TestClient;
    before(async () => {
      const opened = await SeveralServers.open(kind, ['a.test', 'b.test'], {
        config: { directory: { room_list_publication_rules: [allowRule] } },
      });
      several = opened.several;
      const [a, b] = opened.servers;
      anna = await a.registerClient('anna');
      ben = await b.registerClient('ben');
    });
    after(() => several.stop());

    it('moves the aliases and the directory entry of a server that did not upgrade the room, when a user of that server joins the new room', async () => {
      const roomId = await anna.createRoom({
        preset: 'public_chat',
        room_version: '10',
        power_level_content_override: { users: { [anna.id]: 100, [ben.id]: 100 } },
      });
      await ben.do('POST', `/join/${enc(roomId)}`, {}, { via: 'a.test' });
      const alias = `#way-${kind}:b.test`;
      await ben.do('PUT', `/directory/room/${enc(alias)}`, { room_id: roomId });
      await ben.do('PUT', `/directory/list/room/${enc(roomId)}`, { visibility: 'public' });
      const upgraded = await anna.do('POST', `/rooms/${enc(roomId)}/upgrade`, { new_version: '11' });
      const next = String(upgraded['replacement_room']);
      const tombstone = `/rooms/${enc(roomId)}/state/m.room.tombstone`;
      await until(async () => (await ben.call('GET', tombstone)).body['replacement_room'] === next);
      const roomOfAlias = async () =>
        (await ben.do('GET', `/directory/room/${enc(alias)}`))['room_id'] as string;
      const visibility = async (id: string) =>
        (await ben.do('GET', `/directory/list/room/${enc(id)}`))['visibility'];
      assert.equal(await roomOfAlias(), roomId);
      await ben.do('POST', `/join/${enc(next)}`, {}, { via: 'a.test' });
      await until(async () => (await roomOfAlias()) === next);
      // The aliases are moved first. One transaction then moves the entry of the directory from the old to the new room.
      await until(async () => (await visibility(next)) === 'public');
      assert.equal(await visibility(roomId), 'private');
      const create = await ben.do('GET', `/rooms/${enc(next)}/state/m.room.create`);
      const { event_id: tombstoneId } = create['predecessor'] as { event_id: string };
      const event = await ben.do('GET', `/rooms/${enc(roomId)}/event/${enc(tombstoneId)}`);
      assert.equal(event['type'], 'm.room.tombstone');
    });
  });
});
