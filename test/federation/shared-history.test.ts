import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { eventually } from '../clients/eventually.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('the history of a room on two servers', () => {
    let several: SeveralServers;
    let b: FederatedServer;
    let anna: TestClient;
    let ben: TestClient;
    before(async () => {
      ({ several, b, anna, ben } = await SeveralServers.pair(kind));
    });
    after(() => several.stop());

    /** Returns the ids of all events of the room that the user can read, oldest first. */
    async function history(user: TestClient, roomId: string): Promise<string[]> {
      const ids: string[] = [];
      let from: string | undefined;
      do {
        const query: Record<string, string> = { dir: 'b', limit: '15', ...(from !== undefined && { from }) };
        const page = await user.do('GET', `/rooms/${enc(roomId)}/messages`, undefined, query);
        const chunk = page['chunk'] as readonly { event_id: string }[];
        ids.push(...chunk.map(({ event_id }) => event_id));
        from = page['end'] as string | undefined;
      } while (from !== undefined);
      return ids.toReversed();
    }

    it('shows the same events on both servers: events from before the join, during an outage and afterwards', async () => {
      const roomId = await anna.createRoom();
      for (let index = 0; index < 30; index++) await anna.say(roomId, `before ${index}`);
      await ben.do('POST', `/join/${enc(roomId)}`, {}, { server_name: 'a.test' });
      assert.deepEqual(await history(ben, roomId), await history(anna, roomId));

      b.disconnect();
      for (let index = 0; index < 30; index++) await anna.say(roomId, `away ${index}`);
      await anna.setState(roomId, 'm.room.topic', { topic: 'while ben was away' });
      b.reconnect();
      // The message shows server a that server b is reachable again.
      await ben.say(roomId, 'here again');
      const last = await anna.say(roomId, 'last');
      await eventually('ben can read the last message', async () =>
        (await history(ben, roomId)).includes(last),
      );
      const eventIdsOfAnna = new Set(await history(anna, roomId));
      assert.ok(eventIdsOfAnna.size > 60, `${eventIdsOfAnna.size} events`);
      await eventually('ben can read all events', async () =>
        isDeepStrictEqual(new Set(await history(ben, roomId)), eventIdsOfAnna),
      );
      const topic = await ben.do('GET', `/rooms/${enc(roomId)}/state/m.room.topic`);
      assert.equal(topic['topic'], 'while ben was away');
    });
  });
});
