import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { until } from '../support/other-servers/federation-sender.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { type ClientEventJson, enc, type TestClient } from '../support/users/test-client.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('the history of a room after a partition', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let b: FederatedServer;
    let anna: TestClient;
    let ben: TestClient;
    let roomId: string;
    /** The sync token of Anna from before the partition. */
    let since: string;
    /** Ids of the events that were sent on both servers during the partition. */
    let partitionEventIds: Set<string>;
    /** Id of the state event that Ben sent during the partition. */
    let stateId: string;
    before(async () => {
      ({ several, a, b, anna, ben } = await SeveralServers.pair(kind));
      roomId = await anna.createRoom({
        preset: 'public_chat',
        power_level_content_override: { state_default: 0 },
      });
      await ben.do('POST', `/join/${enc(roomId)}`, {}, { via: 'a.test' });
      await until(async () => (await memberCount(ben)) === 2);
      const lastBefore = await ben.say(roomId, 'before');
      await until(async () => canRead(anna, lastBefore));
      since = (await anna.sync()).next_batch;
      a.disconnect();
      b.disconnect();
      stateId = await ben.setState(roomId, 'org.example.late', { by: 'ben' });
      partitionEventIds = new Set([stateId]);
      const lastOfBen = await sayMany(ben, 8);
      await sayMany(anna, 30);
      a.reconnect();
      b.reconnect();
      // Any request shows that the other server is reachable again.
      await anna.createRoom({ invite: [ben.id] });
      await until(async () => canRead(anna, lastOfBen));
    });
    after(() => several.stop());

    const memberCount = async (user: TestClient) =>
      Object.keys((await user.do('GET', `/rooms/${enc(roomId)}/joined_members`))['joined'] as object).length;
    const canRead = async (user: TestClient, eventId: string) =>
      (await user.call('GET', `/rooms/${enc(roomId)}/event/${enc(eventId)}`)).status === 200;
    async function sayMany(user: TestClient, count: number): Promise<string> {
      let last = '';
      for (let n = 0; n < count; n++) {
        last = await user.say(roomId, `apart ${n}`);
        partitionEventIds.add(last);
      }
      return last;
    }
    /** Pages backward from a token to the oldest event. @returns the event ids, each as often as it was returned */
    async function readFrom(token: string, path = '/messages', limit = 7): Promise<string[]> {
      const ids: string[] = [];
      for (let from: string | undefined = token; from !== undefined; ) {
        const query = { dir: 'b', limit: String(limit), from };
        const page = await anna.do('GET', `/rooms/${enc(roomId)}${path}`, undefined, query);
        const chunk = page['chunk'] as readonly { event_id: string }[];
        ids.push(...chunk.map(({ event_id: id }) => id));
        from = page['end'] as string | undefined;
      }
      return ids;
    }
    const idsOf = (events: readonly ClientEventJson[] = []) => events.map(({ event_id: id }) => String(id));
    const limited = (limit: number) => ({ filter: { room: { timeline: { limit } } } });

    it('pages from the prev_batch of a limited sync contain each event that the client lacks, once', async () => {
      const { rooms, next_batch: next } = await anna.sync(since, limited(3));
      const { timeline } = rooms?.join?.[roomId] ?? {};
      assert.equal(timeline?.limited, true);
      const shown = idsOf(timeline?.events);
      assert.equal(shown.length, 3);
      const read = await readFrom(timeline?.prev_batch ?? '');
      const allEventIds = [...shown, ...read];
      for (const eventId of partitionEventIds)
        assert.ok(allEventIds.includes(eventId), `${eventId} is missing`);
      assert.equal(new Set(allEventIds).size, allEventIds.length);
      const fromEnd = await readFrom(next);
      assert.deepEqual(new Set(fromEnd), new Set(allEventIds));
    });

    it('forward pages from a sync token, and backward pages to it, contain all later events', async () => {
      const query = { dir: 'f', limit: '100', from: since };
      const page = await anna.do('GET', `/rooms/${enc(roomId)}/messages`, undefined, query);
      const ids = new Set(idsOf(page['chunk'] as ClientEventJson[]));
      assert.deepEqual(ids, partitionEventIds);
      const bounded = { dir: 'b', limit: '100', to: since };
      const back = await anna.do('GET', `/rooms/${enc(roomId)}/messages`, undefined, bounded);
      assert.deepEqual(new Set(idsOf(back['chunk'] as ClientEventJson[])), partitionEventIds);
    });

    for (const isRestarted of [false, true]) {
      it(`shows the newest events of the history in the timeline of an initial sync, and in its state an older state event that arrived late${isRestarted ? ', after a restart' : ''}`, async () => {
        if (isRestarted) await a.restart();
        const { rooms } = await anna.sync(undefined, limited(10));
        const room = rooms?.join?.[roomId];
        const shown = idsOf(room?.timeline?.events);
        const pages = await readFrom(room?.timeline?.prev_batch ?? '');
        const page = await anna.do('GET', `/rooms/${enc(roomId)}/messages`, undefined, {
          dir: 'b',
          limit: '10',
        });
        assert.deepEqual(shown.toReversed(), idsOf(page['chunk'] as ClientEventJson[]));
        assert.equal(shown.includes(stateId), false);
        assert.ok(idsOf(room?.state?.events).includes(stateId));
        const allEventIds = [...shown, ...pages];
        assert.equal(new Set(allEventIds).size, allEventIds.length);
        for (const eventId of partitionEventIds)
          assert.ok(allEventIds.includes(eventId), `${eventId} is missing`);
      });
    }
  });
});
