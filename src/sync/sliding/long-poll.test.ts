import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { SlidingClient } from '../../../test/support/users/sliding-client.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';

/** Longer than a test may last, so that a client that is not woken fails. */
const timeout = 200_000;

for (const database of selectedDatabases(import.meta.url)) {
  describe(`long poll of sliding sync, on ${database}`, () => {
    let server: TestServer;
    let reader: TestClient;
    let speakers: TestClient[];
    let roomId: string;
    before(async () => {
      server = await startTestServer({ database });
      reader = await TestClient.register(server, 'reader');
      speakers = await Promise.all(['anna', 'ben', 'cleo'].map((name) => TestClient.register(server, name)));
      roomId = await reader.createRoom();
      for (const speaker of speakers) await speaker.join(roomId);
    });
    after(() => server.stop());

    const body = {
      lists: { rooms: { ranges: [[0, 9]], timeline_limit: 60, required_state: [] } },
      extensions: { typing: { enabled: true }, receipts: { enabled: true } },
    };

    it('returns every message to clients that wait, however many are sent at once', {
      timeout: timeout / 2,
    }, async () => {
      // Several clients, so that they are not all woken in the same turn of the event loop.
      const clients = Array.from({ length: 3 }, (_, index) => new SlidingClient(reader, `client${index}`));
      for (const client of clients) await client.sync(body);
      const receiving = clients.map(async (client) => {
        const ids: string[] = [];
        while (ids.length < 60) {
          const { rooms } = await client.sync(body, { timeout });
          ids.push(...(rooms[roomId]?.timeline ?? []).map(({ event_id }) => event_id));
        }
        return ids;
      });
      const sending = speakers.map(async (speaker) => {
        const ids: string[] = [];
        for (let round = 0; round < 4; round++) {
          const texts = Array.from({ length: 5 }, (_, index) => `${round} ${index}`);
          ids.push(...(await Promise.all(texts.map((text) => speaker.say(roomId, text)))));
        }
        return ids;
      });
      const sent = (await Promise.all(sending)).flat().sort();
      const [first, ...laterClients] = await Promise.all(receiving);
      assert.deepEqual(first?.toSorted(), sent);
      for (const received of laterClients) assert.deepEqual(received, first);
    });

    it('answers a waiting request when there is a receipt, or a user starts or stops typing', {
      timeout: timeout / 2,
    }, async () => {
      const client = new SlidingClient(reader);
      await client.sync(body);
      const [anna] = speakers;
      const path = `/rooms/${enc(roomId)}`;
      const next = async (name: 'typing' | 'receipts') => {
        for (;;) {
          const { extensions } = await client.sync(body, { timeout });
          const rooms = extensions[name]?.['rooms'] as Record<string, { content: unknown }> | undefined;
          const entry = rooms?.[roomId];
          if (entry) return entry.content;
        }
      };
      for (const typing of [true, false]) {
        const waiting = next('typing');
        await anna!.do('PUT', `${path}/typing/${enc(anna!.id)}`, { typing, timeout: 100_000 });
        assert.deepEqual(await waiting, { user_ids: typing ? [anna!.id] : [] });
      }
      const messageId = await reader.say(roomId, 'read this');
      const waiting = next('receipts');
      await anna!.do('POST', `${path}/receipt/m.read/${enc(messageId)}`, {});
      assert.ok(JSON.stringify(await waiting).includes(messageId));
    });

    it('answers a waiting request when there is a new message', { timeout: timeout / 2 }, async () => {
      const client = new SlidingClient(reader, 'message');
      await client.sync(body);
      const waiting = client.sync(body, { timeout });
      await speakers[0]!.say(roomId, 'hello');
      const { rooms } = await waiting;
      assert.deepEqual(
        rooms[roomId]?.timeline?.map(({ content }) => content['body']),
        ['hello'],
      );
    });

    it('answers at once when the client changes the required_state of its list', {
      timeout: timeout / 2,
    }, async () => {
      const client = new SlidingClient(reader, 'changed list');
      await client.sync(body);
      const list = { ...body.lists.rooms, required_state: [['m.room.create', '']] };
      const { rooms } = await client.sync({ ...body, lists: { rooms: list } }, { timeout });
      assert.deepEqual(
        rooms[roomId]?.required_state?.map(({ type }) => type),
        ['m.room.create'],
      );
    });
  });
}
