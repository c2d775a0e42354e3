import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { selectedDatabases } from '../../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../../test/support/servers/server.ts';
import { ClientDevice } from '../../../../test/support/users/client-device.ts';
import { SlidingClient } from '../../../../test/support/users/sliding-client.ts';
import { enc, TestClient } from '../../../../test/support/users/test-client.ts';

const lists = { all: { ranges: [[0, 9]], timeline_limit: 1, required_state: [] } };
const bodyWith = (extensions: object, ranges = [[0, 9]]) => ({
  lists: { all: { ...lists.all, ranges } },
  extensions,
});

interface InRooms<T> {
  readonly rooms: Record<string, T>;
}
interface Entry {
  readonly type: string;
  readonly content: Record<string, unknown>;
}

for (const database of selectedDatabases(import.meta.url)) {
  describe(`extensions of sliding sync on ${database}`, () => {
    let server: TestServer;
    let count = 0;
    before(async () => {
      server = await startTestServer({ database });
    });
    after(() => server.stop());

    const annaAndBen = async () => {
      const people = ['anna', 'ben'].map((name) => TestClient.register(server, `${name}${count++}`));
      const [anna, ben] = (await Promise.all(people)) as [TestClient, TestClient];
      const roomId = await anna.createRoom({ preset: 'public_chat' });
      await ben.join(roomId);
      return { anna, ben, roomId };
    };

    it('leaves extensions out of the answer when they are not enabled', async () => {
      const { anna } = await annaAndBen();
      assert.deepEqual((await new SlidingClient(anna).sync({ lists })).extensions, {});
    });

    it('account_data returns all entries at first and then changes, including changes made while a room was outside of the window', async () => {
      const { anna, roomId } = await annaAndBen();
      const user = `/user/${enc(anna.id)}`;
      const roomPath = `${user}/rooms/${enc(roomId)}/account_data`;
      await anna.do('PUT', `${user}/account_data/org.example`, { n: 1 });
      await anna.do('PUT', `${roomPath}/org.example.room`, { n: 1 });
      const client = new SlidingClient(anna);
      const syncExtension = async (ranges?: number[][]) => {
        const { extensions } = await client.sync(bodyWith({ account_data: { enabled: true } }, ranges));
        const extension = extensions['account_data'] ?? { global: [], rooms: {} };
        return extension as unknown as { global: Entry[] } & InRooms<Entry[]>;
      };
      const first = await syncExtension();
      assert.deepEqual(first.global.map(({ type }) => type).sort(), ['m.push_rules', 'org.example']);
      assert.deepEqual(first.rooms[roomId], [{ type: 'org.example.room', content: { n: 1 } }]);
      assert.deepEqual(await syncExtension(), { global: [], rooms: {} });
      await anna.do('PUT', `${user}/account_data/org.example`, { n: 2 });
      assert.deepEqual((await syncExtension()).global, [{ type: 'org.example', content: { n: 2 } }]);
      const rule = { actions: ['notify'] };
      await anna.do('PUT', `/pushrules/global/room/${enc(roomId)}`, rule);
      assert.deepEqual(
        (await syncExtension()).global.map(({ type }) => type),
        ['m.push_rules'],
      );
      await anna.createRoom();
      await syncExtension();
      await anna.do('PUT', `${roomPath}/org.example.room`, { n: 2 });
      assert.deepEqual((await syncExtension([[0, 0]])).rooms, {});
      await server.restart();
      assert.deepEqual((await syncExtension()).rooms[roomId], [
        { type: 'org.example.room', content: { n: 2 } },
      ]);
    });

    it("receipts returns at first the receipts for timeline events and the user's own receipts, and then all new receipts", async () => {
      const { anna, ben, roomId } = await annaAndBen();
      const [old, recent] = [await anna.say(roomId, 'old'), await anna.say(roomId, 'recent')];
      const read = (person: TestClient, eventId: string) =>
        person.do('POST', `/rooms/${enc(roomId)}/receipt/m.read/${enc(eventId)}`, {});
      await read(ben, old);
      await read(anna, old);
      const client = new SlidingClient(anna);
      const syncExtension = async () => {
        const { extensions } = await client.sync(bodyWith({ receipts: { enabled: true } }));
        const extension = extensions['receipts'] as unknown as InRooms<Entry> | undefined;
        const content = (extension?.rooms[roomId]?.content ?? {}) as Record<string, Record<string, object>>;
        return Object.entries(content).map(([id, types]) => [id, Object.keys(types['m.read'] ?? {})]);
      };
      assert.deepEqual(await syncExtension(), [[old, [anna.id]]]);
      await read(ben, recent);
      assert.deepEqual(await syncExtension(), [[recent, [ben.id]]]);
      assert.deepEqual(await syncExtension(), []);
    });

    it('receipts of the user lower the unread count', async () => {
      const { anna, ben, roomId } = await annaAndBen();
      const eventId = await ben.say(roomId, 'unread');
      const client = new SlidingClient(anna);
      assert.equal((await client.sync({ lists })).rooms[roomId]?.notification_count, 1);
      await anna.do('POST', `/rooms/${enc(roomId)}/receipt/m.read/${enc(eventId)}`, {});
      const room = (await client.sync({ lists })).rooms[roomId];
      assert.deepEqual([room?.notification_count, room?.timeline], [0, undefined]);
    });

    it('is_dm of a room changes with the m.direct account data', async () => {
      const { anna, ben, roomId } = await annaAndBen();
      const client = new SlidingClient(anna);
      const path = `/user/${enc(anna.id)}/account_data/m.direct`;
      assert.equal((await client.sync({ lists })).rooms[roomId]?.is_dm, undefined);
      await anna.do('PUT', path, { [ben.id]: [roomId] });
      assert.equal((await client.sync({ lists })).rooms[roomId]?.is_dm, true);
      await anna.do('PUT', path, {});
      assert.equal((await client.sync({ lists })).rooms[roomId]?.is_dm, false);
    });

    it('typing returns typing users and an empty list when they stop', async () => {
      const { anna, ben, roomId } = await annaAndBen();
      const client = new SlidingClient(anna);
      const syncExtension = async (options: object = {}) => {
        const { extensions } = await client.sync(bodyWith({ typing: { enabled: true, ...options } }));
        const extension = extensions['typing'] as unknown as InRooms<Entry> | undefined;
        return extension?.rooms[roomId]?.content['user_ids'];
      };
      assert.equal(await syncExtension(), undefined);
      const path = `/rooms/${enc(roomId)}/typing/${enc(ben.id)}`;
      await ben.do('PUT', path, { typing: true, timeout: 30_000 });
      assert.equal(await syncExtension({ lists: ['none'] }), undefined);
      await ben.do('PUT', path, { typing: false });
      await ben.do('PUT', path, { typing: true, timeout: 30_000 });
      assert.deepEqual(await syncExtension(), [ben.id]);
      await ben.do('PUT', path, { typing: false });
      assert.deepEqual(await syncExtension(), []);
    });

    it('applies an extension to the lists and rooms that the request names, and to all of them for `*`', async () => {
      const { anna, ben, roomId } = await annaAndBen();
      const listedRoom = await anna.createRoom();
      await ben.join(listedRoom);
      for (const id of [roomId, listedRoom]) {
        await ben.do('PUT', `/rooms/${enc(id)}/typing/${enc(ben.id)}`, { typing: true, timeout: 30_000 });
      }
      const config = { timeline_limit: 1, required_state: [] };
      let connections = 0;
      /** Requests `listedRoom` with a list, and `roomId` with a subscription. @returns the rooms with typing */
      const syncExtension = async (selection: object) => {
        const { extensions } = await new SlidingClient(anna, `selection ${connections++}`).sync({
          lists: { top: { ...config, ranges: [[0, 0]] } },
          room_subscriptions: { [roomId]: config },
          extensions: { typing: { enabled: true, ...selection } },
        });
        const extension = extensions['typing'] as unknown as InRooms<Entry> | undefined;
        return Object.keys(extension?.rooms ?? {}).sort();
      };
      const bothRooms = [roomId, listedRoom].sort();
      assert.deepEqual(await syncExtension({}), bothRooms);
      assert.deepEqual(await syncExtension({ rooms: ['*'] }), bothRooms);
      assert.deepEqual(await syncExtension({ lists: ['*'], rooms: [] }), [listedRoom]);
      assert.deepEqual(await syncExtension({ lists: ['top'], rooms: ['!none:test'] }), [listedRoom]);
      assert.deepEqual(await syncExtension({ lists: [], rooms: ['*'] }), [roomId]);
      assert.deepEqual(await syncExtension({ lists: [], rooms: [roomId] }), [roomId]);
      assert.deepEqual(await syncExtension({ lists: [], rooms: [listedRoom] }), []);
    });

    it('to_device returns messages until they are acknowledged', async () => {
      const { anna, ben } = await annaAndBen();
      const client = new SlidingClient(anna);
      const syncExtension = async (since?: string) => {
        const request = { enabled: true, limit: 2, ...(since === undefined ? undefined : { since }) };
        const { extensions } = await client.sync({ extensions: { to_device: request } });
        return extensions['to_device'] as { next_batch: string; events: Entry[] };
      };
      await syncExtension();
      for (const n of [1, 2, 3]) {
        const messages = { [anna.id]: { '*': { n } } };
        await ben.do('PUT', `/sendToDevice/org.example/${enc(`${ben.id}${n}`)}`, { messages });
      }
      const first = await syncExtension();
      assert.deepEqual(
        first.events.map(({ content }) => content['n']),
        [1, 2],
      );
      assert.deepEqual((await syncExtension()).events, first.events);
      const second = await syncExtension(first.next_batch);
      assert.deepEqual(
        second.events.map(({ content }) => content['n']),
        [3],
      );
      assert.deepEqual((await syncExtension(second.next_batch)).events, []);
      assert.deepEqual((await syncExtension()).events, []);
      assert.equal(
        (await client.request({ extensions: { to_device: { enabled: true, since: 'x' } } })).status,
        400,
      );
    });

    it('e2ee returns one-time key counts and changed device lists', async () => {
      const { anna, ben } = await annaAndBen();
      const client = new SlidingClient(anna);
      const syncExtension = async () =>
        (await client.sync({ extensions: { e2ee: { enabled: true } } })).extensions['e2ee'];
      assert.deepEqual(await syncExtension(), {
        device_one_time_keys_count: { signed_curve25519: 0 },
        device_unused_fallback_key_types: [],
      });
      const { device_id } = await ben.do('GET', '/account/whoami');
      const device_keys = new ClientDevice(ben.id, String(device_id)).deviceKeys();
      await ben.do('POST', '/keys/upload', { device_keys });
      assert.deepEqual((await syncExtension())?.['device_lists'], { changed: [ben.id], left: [] });
      assert.equal((await syncExtension())?.['device_lists'], undefined);
    });
  });
}
