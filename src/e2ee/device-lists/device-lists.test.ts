import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import { codeOf, E2eeServer, type UserWithKeys } from '../../../test/support/servers/e2ee-server.ts';
import { jsonFacts, Stream } from '../../kernel/streams/index.ts';
import { DeviceLists, type SignatureChange } from './device-lists.ts';

forEachDatabase((open) => {
  let server: E2eeServer;
  let alice: UserWithKeys;
  let bob: UserWithKeys;
  let carol: UserWithKeys;
  let mark: number;
  afterEach(() => server.stop());

  async function start(): Promise<void> {
    server = await E2eeServer.start(open);
    [alice, bob, carol] = [await server.user('alice'), await server.user('bob'), await server.user('carol')];
    mark = server.position;
  }

  /** Asks as the server that remembers, and as one that was started just now: both must say the same. */
  async function changes({ userId }: UserWithKeys, after = mark, upTo = server.position) {
    const { database, streams } = server.server;
    const restarted = new DeviceLists({
      database,
      streams,
      devices: server.server.slice.devices,
      engine: server.rooms.engine,
      signatureStream: new Stream<SignatureChange>('none', jsonFacts()),
    });
    const [one, other] = await Promise.all([
      server.e2ee.deviceLists.changes(userId, after, upTo),
      restarted.changes(userId, after, upTo),
    ]);
    const sorted = ({ changed, left }: typeof one) => ({ changed: changed.sort(), left: left.sort() });
    assert.deepEqual(sorted(other), sorted(one));
    return one;
  }
  const nothing = { changed: [], left: [] };
  const leave = ({ userId }: UserWithKeys, roomId: string) => server.rooms.memberships.leave(userId, roomId);
  const join = ({ userId }: UserWithKeys, roomId: string) => server.rooms.memberships.join(userId, roomId);
  const newKeys = (person: UserWithKeys) =>
    server.call(person, 'POST', '/keys/upload', { device_keys: person.client.deviceKeys() });

  describe('device lists', () => {
    it('name those in a shared room whose devices have changed, and oneself', async () => {
      await start();
      await server.room(alice, bob);
      mark = server.position;
      assert.deepEqual(await changes(alice), nothing);
      await newKeys(bob);
      await newKeys(carol);
      assert.deepEqual(await changes(alice), { changed: [bob.userId], left: [] });
      assert.deepEqual(await changes(carol), { changed: [carol.userId], left: [] });
      mark = server.position;
      assert.deepEqual(await changes(alice), nothing);
      await server.server.login('alice');
      assert.deepEqual(await changes(alice), { changed: [alice.userId], left: [] });
      assert.deepEqual(await changes(bob), { changed: [alice.userId], left: [] });
    });

    it('name those who have a device less, or another name for one', async () => {
      await start();
      await server.room(alice, bob);
      const second = await server.device('bob');
      mark = server.position;
      await server.call(bob, 'PUT', `/devices/${bob.deviceId}`, { display_name: 'Phone' });
      assert.deepEqual(await changes(alice), { changed: [bob.userId], left: [] });
      mark = server.position;
      await server.call(second, 'POST', '/logout', {});
      assert.deepEqual(await changes(alice), { changed: [bob.userId], left: [] });
    });

    it('name those with whom a first room is shared, on both sides', async () => {
      await start();
      const room = await server.room(alice);
      assert.deepEqual(await changes(alice), nothing);
      await join(bob, room);
      assert.deepEqual(await changes(alice), { changed: [bob.userId], left: [] });
      assert.deepEqual(await changes(bob), { changed: [alice.userId], left: [] });
      mark = server.position;
      await server.room(alice, bob);
      assert.deepEqual(await changes(alice), nothing);
      assert.deepEqual(await changes(bob), nothing);
    });

    it('name those with whom no room is shared any more, on both sides', async () => {
      await start();
      const [one, two] = [await server.room(alice, bob, carol), await server.room(alice, bob)];
      mark = server.position;
      await leave(bob, one);
      assert.deepEqual(await changes(alice), nothing);
      assert.deepEqual(await changes(carol), { changed: [], left: [bob.userId] });
      await leave(alice, two);
      assert.deepEqual(await changes(alice), { changed: [], left: [bob.userId] });
      assert.deepEqual((await changes(bob)).left.sort(), [alice.userId, carol.userId]);
      mark = server.position;
      await newKeys(bob);
      assert.deepEqual(await changes(alice), nothing);
    });

    it('name those who went and came back, as nobody heard of them meanwhile, and not those who came and went', async () => {
      await start();
      const room = await server.room(alice, bob);
      mark = server.position;
      await join(carol, room);
      await leave(carol, room);
      await leave(bob, room);
      await join(bob, room);
      assert.deepEqual(await changes(alice), { changed: [bob.userId], left: [] });
      assert.deepEqual(await changes(bob), { changed: [alice.userId], left: [] });
      assert.deepEqual(await changes(carol), nothing);
      mark = server.position;
      const other = await server.room(alice, bob);
      await leave(bob, other);
      await leave(bob, room);
      await join(bob, other);
      await leave(alice, other);
      await join(bob, room);
      await join(alice, other);
      assert.deepEqual(await changes(alice), { changed: [bob.userId], left: [] });
      assert.deepEqual(await changes(bob), { changed: [alice.userId], left: [] });
    });

    it('do not name those who went and came back to one of several rooms', async () => {
      await start();
      const room = await server.room(alice, bob);
      await server.room(alice, bob);
      mark = server.position;
      await leave(bob, room);
      await join(bob, room);
      await leave(alice, room);
      await join(alice, room);
      assert.deepEqual(await changes(alice), nothing);
      assert.deepEqual(await changes(bob), nothing);
    });

    it('count invitations as nothing', async () => {
      await start();
      const room = await server.room(alice);
      await server.rooms.memberships.invite(alice.userId, room, bob.userId);
      await newKeys(bob);
      assert.deepEqual(await changes(alice), nothing);
      await leave(bob, room);
      assert.deepEqual(await changes(alice), nothing);
    });

    it('tell of any stretch of time what happened in it', async () => {
      await start();
      const room = await server.room(alice);
      const marks = [server.position];
      for (const step of [join, leave, join, leave]) {
        await step(bob, room);
        marks.push(server.position);
      }
      const [came, went] = [
        { changed: [bob.userId], left: [] },
        { changed: [], left: [bob.userId] },
      ];
      for (const [from, fromMark] of marks.entries()) {
        for (const [to, toMark] of marks.entries()) {
          if (to < from) continue;
          // Who was there at both times, and not in between, has come as well.
          const isBack = to > from && to % 2 === 1 && from % 2 === 1;
          const expected = to % 2 === from % 2 ? (isBack ? came : nothing) : to % 2 === 1 ? came : went;
          assert.deepEqual(await changes(alice, fromMark, toMark), expected, `from ${from} to ${to}`);
        }
      }
    });

    it('tell the same whatever is still in memory', async () => {
      await start();
      const { database, streams } = server.server;
      const { engine } = server.rooms;
      const { devices } = server.server.slice;
      const parts = { database, streams, devices, engine, signatureStream: server.e2ee.signatureStream };
      const forgetful = new DeviceLists({ ...parts, capacity: 2 });
      const people = [alice, bob, carol];
      const rooms = [await server.room(alice), await server.room(bob)];
      const marks = [server.position];
      for (let step = 0; step < 30; step++) {
        const person = people[step % 3]!;
        const room = rooms[(step >> 1) % 2]!;
        const isIn = (await engine.heads.get(room))?.membership(person.userId) === 'join';
        if (step % 5 === 4) await newKeys(person);
        else await (isIn ? leave(person, room) : join(person, room));
        marks.push(server.position);
      }
      const sorted = ({ changed, left }: Awaited<ReturnType<typeof forgetful.changes>>) => ({
        changed: changed.sort(),
        left: left.sort(),
      });
      for (const after of marks) {
        for (const { userId } of people) {
          const known = await server.e2ee.deviceLists.changes(userId, after, server.position);
          const read = await forgetful.changes(userId, after, server.position);
          assert.deepEqual(sorted(read), sorted(known));
        }
      }
    });

    it('cost no query when nothing has changed', async () => {
      await start();
      const room = await server.room(alice, bob);
      assert.deepEqual(await server.e2ee.deviceLists.roomsOf(alice.userId), [room]);
      assert.equal(server.e2ee.deviceLists.isQuiet(mark), false);
      mark = server.position;
      assert.equal(server.e2ee.deviceLists.isQuiet(mark), true);
      await server.e2ee.deviceLists.changes(alice.userId, mark, mark);
      const { reads, scans } = server.server.database.statistics;
      await server.e2ee.deviceLists.changes(alice.userId, mark, server.position);
      const after = server.server.database.statistics;
      assert.deepEqual([after.reads, after.scans], [reads, scans]);
    });
  });

  describe('GET /keys/changes', () => {
    it('tells what has changed between two tokens', async () => {
      await start();
      const from = `s1_${server.position}`;
      const room = await server.room(alice, bob);
      await server.room(alice, carol);
      const between = `s1_${server.position}`;
      await leave(bob, room);
      const to = `s1_${server.position}`;
      const get = async (one: string, other: string) =>
        (await server.call(alice, 'GET', `/keys/changes?from=${one}&to=${other}`)).body;
      assert.deepEqual(await get(from, between), { changed: [bob.userId, carol.userId], left: [] });
      assert.deepEqual(await get(between, to), { changed: [], left: [bob.userId] });
      assert.deepEqual(await get(from, `s1_${server.position + 1000}`), {
        changed: [carol.userId],
        left: [],
      });
      assert.deepEqual(await get(to, from), nothing);
      for (const query of ['', '?from=x&to=y', `?from=${from}`]) {
        assert.equal(codeOf(await server.call(alice, 'GET', `/keys/changes${query}`))[0], 400);
      }
    });
  });
});
