import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { eventually } from '../../../test/clients/eventually.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { type FederatedServer, SeveralServers } from '../../../test/support/other-servers/several-servers.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';
import { openDatabase } from '../../kernel/database/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { Administration } from '../test/administration.ts';
import { readPagesWhileChanging } from '../test/read-pages.ts';

/** Addresses on which no server listens. */
const unreachable = ['127.0.0.1:1', '127.0.0.1:2', '127.0.0.1:3'];

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('federation/destinations of the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    before(async () => {
      server = await startTestServer({
        database: kind,
        config: { outbound: { ip_range_whitelist: ['127.0.0.0/8'] } },
      });
      admin = await Administration.open(server);
      const anna = await TestClient.register(server, 'anna');
      for (const name of unreachable) {
        const found = await anna.call('GET', `/profile/${enc(`@bob:${name}`)}`);
        assert.notEqual(found.status, 200);
      }
    });
    after(() => server.stop());

    const path = '/v1/federation/destinations';
    const list = async (query: Record<string, string | number> = {}) =>
      (await admin.do('GET', path, undefined, query)) as unknown as {
        destinations: { destination: string; failure_ts: number | null; retry_interval: number }[];
        total: number;
        next_token?: string;
      };

    it('lists servers with their backoff in every order and by pages', async () => {
      const { destinations, total } = await list();
      assert.deepEqual([destinations.map(({ destination }) => destination), total], [unreachable, 3]);
      assert.ok(destinations.every((one) => Number(one.failure_ts) > 1e12 && one.retry_interval > 0));
      for (const order_by of [
        'destination',
        'retry_last_ts',
        'retry_interval',
        'next_retry_ts',
        'failure_ts',
        'last_successful_stream_ordering',
      ]) {
        const whole = (await list({ order_by, dir: 'b' })).destinations;
        const first = await list({ order_by, dir: 'b', limit: 2 });
        assert.equal(first.next_token, '2');
        const rest = await list({ order_by, dir: 'b', limit: 2, from: 2 });
        assert.deepEqual([...first.destinations, ...rest.destinations], whole, order_by);
      }
    });

    it('orders servers by the time of the next attempt to reach them, and servers without a backoff first', async () => {
      const database = await openDatabase(server.databaseOptions, { log: silentLogger });
      const servers: readonly (readonly [name: string, last: number, interval: number])[] = [
        ['up.next.test', 5_000, 0],
        ['soon.next.test', 9_000, 100],
        ['late.next.test', 1_000, 9_000],
      ];
      await database.batch([
        {
          sql: 'insert into destinations (server_name, retry_last_ts, retry_interval) values (?, ?, ?)',
          rows: servers,
        },
      ]);
      const names = async (dir: string) =>
        (await list({ order_by: 'next_retry_ts', dir, destination: 'next.test' })).destinations.map(
          ({ destination }) => destination,
        );
      const expected = ['up.next.test', 'soon.next.test', 'late.next.test'];
      assert.deepEqual(await names('f'), expected);
      assert.deepEqual(await names('b'), expected.toReversed());
      await database.batch([
        { sql: 'delete from destinations where server_name = ?', rows: servers.map(([name]) => [name]) },
      ]);
      await database.close();
    });

    it('continues after the last server of a page when servers are added, removed or tried again between two requests', async () => {
      const database = await openDatabase(server.databaseOptions, { log: silentLogger });
      const add = (...rows: (readonly [name: string, last: number])[]) =>
        database.batch([
          {
            sql: 'insert into destinations (server_name, retry_last_ts, retry_interval) values (?, ?, 1)',
            rows,
          },
        ]);
      const remove = (...names: string[]) =>
        database.batch([
          { sql: 'delete from destinations where server_name = ?', rows: names.map((name) => [name]) },
        ]);
      const page = async (order: string, from: number) => {
        const query = { destination: 'paged.test', order_by: order, limit: 2, from };
        return (await list(query)).destinations.map(({ destination }) => destination[0]);
      };
      for (const order of ['destination', 'retry_last_ts']) {
        await add(['b.paged.test', 20], ['c.paged.test', 30], ['d.paged.test', 40], ['e.paged.test', 50]);
        assert.deepEqual(await page(order, 0), ['b', 'c'], order);
        await add(['a.paged.test', 10]);
        assert.deepEqual(await page(order, 2), ['d', 'e'], order);
        await remove('a.paged.test', 'b.paged.test');
        assert.deepEqual(await page(order, 2), ['d', 'e'], order);
        // The last server of the first page moves to a later place in the order by attempts.
        await database.batch([
          {
            sql: 'update destinations set retry_last_ts = ? where server_name = ?',
            rows: [[45, 'c.paged.test']],
          },
        ]);
        const expected = order === 'destination' ? ['d', 'e'] : ['d', 'c'];
        assert.deepEqual(await page(order, 2), expected, order);
        await remove('c.paged.test', 'd.paged.test', 'e.paged.test');
      }
      await database.close();
    });

    it('lists each room of a server once when other rooms are added and removed between two pages', async () => {
      const database = await openDatabase(server.databaseOptions, { log: silentLogger });
      const name = unreachable[2]!;
      const write = (sql: string, rooms: readonly string[]) =>
        database.batch([{ sql, rows: rooms.map((room) => [name, `!${room}:test`]) }]);
      const add = (...rooms: string[]) =>
        write('insert into room_servers (server_name, room_id) values (?, ?)', rooms);
      const remove = (...rooms: string[]) =>
        write('delete from room_servers where server_name = ? and room_id = ?', rooms);
      for (const dir of ['f', 'b']) {
        const permanent = ['c', 'e', 'g', 'i', 'k', 'm'];
        await add(...permanent, 'd', 'l');
        const changes = [
          () => add('a', 'b', 'n', 'o'),
          () => remove('a', 'b', 'd', 'l', 'n', 'o'),
          () => add('a', 'h', 'o'),
        ];
        const keys = await readPagesWhileChanging(
          async (from = 0) => {
            const query = { dir, limit: 2, from };
            const page = await admin.do('GET', `${path}/${enc(name)}/rooms`, undefined, query);
            const rooms = page['rooms'] as { room_id: string }[];
            return {
              keys: rooms.map(({ room_id: roomId }) => roomId[1]!),
              next: page['next_token'] as string | undefined,
            };
          },
          async () => changes.shift()?.(),
        );
        const expected = dir === 'f' ? permanent : permanent.toReversed();
        assert.deepEqual(
          keys.filter((key) => permanent.includes(key)),
          expected,
          dir,
        );
        await remove('a', 'b', 'd', 'h', 'l', 'n', 'o', ...permanent);
      }
      await database.close();
    });

    it('lists servers whose names contain a text', async () => {
      const { destinations, total } = await list({ destination: '1:2' });
      assert.deepEqual([destinations.map(({ destination }) => destination), total], [['127.0.0.1:2'], 1]);
      assert.equal((await list({ destination: '%' })).total, 0);
    });

    it('shows a server and its rooms, and ends its backoff', async () => {
      const destinationPath = `${path}/${enc(unreachable[1]!)}`;
      const found = await admin.do('GET', destinationPath);
      assert.equal(found['last_successful_stream_ordering'], null);
      assert.ok(Number(found['retry_last_ts']) > 1e12);
      assert.deepEqual(await admin.do('GET', `${destinationPath}/rooms`), { rooms: [], total: 0 });
      assert.deepEqual(await admin.do('POST', `${destinationPath}/reset_connection`, {}), {});
      const reset = await admin.do('GET', destinationPath);
      assert.deepEqual([reset['failure_ts'], reset['retry_last_ts'], reset['retry_interval']], [null, 0, 0]);
      assert.deepEqual(await admin.refused('POST', `${destinationPath}/reset_connection`, {}), [
        400,
        'M_UNKNOWN',
      ]);
      // The message is sent after the other checks: a failed attempt to send it begins another backoff.
      const messages = { [`@x:${unreachable[1]}`]: { '*': {} } };
      const sent = await admin.admin.call('PUT', '/sendToDevice/org.example/1', { messages });
      assert.equal(sent.status, 200);
      const { pending_rooms: rooms, pending_edus: edus } = await admin.do('GET', destinationPath);
      assert.deepEqual([rooms, edus], [0, 1]);
      assert.deepEqual(await admin.refused('GET', `${path}/unknown.example`), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await admin.refused('GET', `${path}/unknown.example/rooms`), [404, 'M_NOT_FOUND']);
    });

    it('lists the rooms shared with a server and the newest stream position delivered to it, in both directions and by pages', async () => {
      const { several, servers } = await SeveralServers.open(kind, ['a.test', 'b.test']);
      try {
        const [a, b] = servers as readonly [FederatedServer, FederatedServer];
        const operator = await Administration.open(a);
        const [anna, ben] = [await a.registerClient('anna'), await b.registerClient('ben')];
        const shared: string[] = [];
        for (let index = 0; index < 3; index++) {
          const roomId = await anna.createRoom({ preset: 'public_chat' });
          await ben.do('POST', `/join/${enc(roomId)}`, {}, { server_name: 'a.test' });
          await anna.say(roomId, 'hello');
          shared.push(roomId);
        }
        await anna.createRoom();
        type Page = {
          rooms: { room_id: string; stream_ordering: number }[];
          total: number;
          next_token?: string;
        };
        const rooms = async (query: Record<string, string | number> = {}) =>
          (await operator.do('GET', `${path}/b.test/rooms`, undefined, query)) as unknown as Page;
        // Positions grow until all messages are delivered.
        await eventually('all lists to show the same positions', async () => {
          const found = await operator.call('GET', `${path}/b.test/rooms`);
          const { rooms: all = [], next_token } = found.body as Partial<Page>;
          if (all.length < 3 || all.some((room) => room.stream_ordering === 0)) return false;
          assert.deepEqual(all.map((room) => room.room_id).toSorted(), shared.toSorted());
          assert.equal(next_token, undefined);
          const first = await rooms({ limit: 2 });
          const second = await rooms({ limit: 2, from: first.next_token! });
          assert.deepEqual([first.total, second.total, second.next_token], [3, 3, undefined]);
          const backwards = (await rooms({ dir: 'b' })).rooms.toReversed();
          const later = (await rooms()).rooms;
          return isDeepStrictEqual([all, [...first.rooms, ...second.rooms], backwards], Array(3).fill(later));
        });
        await ben.leave(shared[0]!);
        await eventually('the room to leave the list', async () => (await rooms()).total === 2);
        await operator.do('DELETE', `/v1/rooms/${enc(shared[1]!)}`, { force_purge: true });
        await eventually('the deleted room to leave the list', async () => (await rooms()).total === 1);
        assert.deepEqual(
          (await rooms()).rooms.map((room) => room.room_id),
          [shared[2]],
        );
      } finally {
        await several.stop();
      }
    });
  });
});
