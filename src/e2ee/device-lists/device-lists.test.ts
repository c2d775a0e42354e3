import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { codeOf, E2eeServer, type UserWithKeys } from '../../../test/support/servers/e2ee-server.ts';
import { jsonFacts, Stream } from '../../kernel/streams/index.ts';
import { DeviceLists, type SignatureChange } from './device-lists.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let server: E2eeServer;
  let alice: UserWithKeys;
  let bob: UserWithKeys;
  let carol: UserWithKeys;
  let since: number;
  afterEach(() => server.stop());

  async function start(): Promise<void> {
    server = await E2eeServer.start(open);
    [alice, bob, carol] = [await server.user('alice'), await server.user('bob'), await server.user('carol')];
    since = server.position;
  }

  /**
   * Returns the changes, after asserting that a restarted server, which reads them from the database, returns
   * the same.
   */
  async function changes({ userId }: UserWithKeys, after = since, upTo = server.position) {
    const { database, streams } = server.server;
    const restarted = new DeviceLists({
      database,
      streams,
      devices: server.server.slice.devices,
      engine: server.rooms.engine,
      signatureStream: new Stream<SignatureChange>('none', jsonFacts()),
    });
    const [fromMemory, fromDatabase] = await Promise.all([
      server.e2ee.deviceLists.changes(userId, after, upTo),
      restarted.changes(userId, after, upTo),
    ]);
    const sorted = ({ changed, left }: typeof fromMemory) => ({ changed: changed.sort(), left: left.sort() });
    assert.deepEqual(sorted(fromDatabase), sorted(fromMemory));
    return fromMemory;
  }
  const noChanges = { changed: [], left: [] };
  const leave = ({ userId }: UserWithKeys, roomId: string) => server.rooms.memberships.leave(userId, roomId);
  const join = ({ userId }: UserWithKeys, roomId: string) => server.rooms.memberships.join(userId, roomId);
  const uploadKeys = (user: UserWithKeys) =>
    server.call(user, 'POST', '/keys/upload', { device_keys: user.client.deviceKeys() });

  describe('DeviceLists.changes', () => {
    it('returns the user and the users in shared rooms whose device keys have changed', async () => {
      await start();
      await server.room(alice, bob);
      since = server.position;
      assert.deepEqual(await changes(alice), noChanges);
      await uploadKeys(bob);
      await uploadKeys(carol);
      assert.deepEqual(await changes(alice), { changed: [bob.userId], left: [] });
      assert.deepEqual(await changes(carol), { changed: [carol.userId], left: [] });
      since = server.position;
      assert.deepEqual(await changes(alice), noChanges);
      await server.server.login('alice');
      assert.deepEqual(await changes(alice), { changed: [alice.userId], left: [] });
      assert.deepEqual(await changes(bob), { changed: [alice.userId], left: [] });
    });

    it('returns a user who has deleted or renamed a device', async () => {
      await start();
      await server.room(alice, bob);
      const second = await server.device('bob');
      since = server.position;
      await server.call(bob, 'PUT', `/devices/${bob.deviceId}`, { display_name: 'Phone' });
      assert.deepEqual(await changes(alice), { changed: [bob.userId], left: [] });
      since = server.position;
      await server.call(second, 'POST', '/logout', {});
      assert.deepEqual(await changes(alice), { changed: [bob.userId], left: [] });
    });

    it('reports two users as changed to each other when they begin to share a room', async () => {
      await start();
      const room = await server.room(alice);
      assert.deepEqual(await changes(alice), noChanges);
      await join(bob, room);
      assert.deepEqual(await changes(alice), { changed: [bob.userId], left: [] });
      // A user who joins a room also receives their own user id in `changed`.
      assert.deepEqual(await changes(bob), { changed: [alice.userId, bob.userId], left: [] });
      await uploadKeys(bob);
      await uploadKeys(alice);
      assert.deepEqual(await changes(bob), { changed: [alice.userId, bob.userId], left: [] });
      since = server.position;
      await server.room(alice, bob);
      assert.deepEqual(await changes(alice), noChanges);
      assert.deepEqual(await changes(bob), noChanges);
    });

    it('reports two users as left to each other when they leave their last shared room', async () => {
      await start();
      const roomOfThree = await server.room(alice, bob, carol);
      const roomOfTwo = await server.room(alice, bob);
      since = server.position;
      await leave(bob, roomOfThree);
      assert.deepEqual(await changes(alice), noChanges);
      assert.deepEqual(await changes(carol), { changed: [], left: [bob.userId] });
      await leave(alice, roomOfTwo);
      assert.deepEqual(await changes(alice), { changed: [], left: [bob.userId] });
      assert.deepEqual((await changes(bob)).left.sort(), [alice.userId, carol.userId]);
      since = server.position;
      await uploadKeys(bob);
      assert.deepEqual(await changes(alice), noChanges);
    });

    it('returns as changed the users who left all shared rooms and joined again, and no users who only joined and left', async () => {
      await start();
      const room = await server.room(alice, bob);
      since = server.position;
      await join(carol, room);
      await leave(carol, room);
      await leave(bob, room);
      await join(bob, room);
      assert.deepEqual(await changes(alice), { changed: [bob.userId], left: [] });
      assert.deepEqual(await changes(bob), { changed: [alice.userId, bob.userId], left: [] });
      assert.deepEqual(await changes(carol), noChanges);
      since = server.position;
      const secondRoom = await server.room(alice, bob);
      await leave(bob, secondRoom);
      await leave(bob, room);
      await join(bob, secondRoom);
      await leave(alice, secondRoom);
      await join(bob, room);
      await join(alice, secondRoom);
      assert.deepEqual(await changes(alice), { changed: [alice.userId, bob.userId], left: [] });
      assert.deepEqual(await changes(bob), { changed: [alice.userId, bob.userId], left: [] });
    });

    it('does not return users who left and joined one of several shared rooms', async () => {
      await start();
      const room = await server.room(alice, bob);
      await server.room(alice, bob);
      since = server.position;
      await leave(bob, room);
      await join(bob, room);
      await leave(alice, room);
      await join(alice, room);
      assert.deepEqual(await changes(alice), noChanges);
      assert.deepEqual(await changes(bob), noChanges);
    });

    it('does not report a user who is only invited to a shared room', async () => {
      await start();
      const room = await server.room(alice);
      await server.rooms.memberships.invite(alice.userId, room, bob.userId);
      await uploadKeys(bob);
      assert.deepEqual(await changes(alice), noChanges);
      await leave(bob, room);
      assert.deepEqual(await changes(alice), noChanges);
    });

    it('returns the changes of any range of positions', async () => {
      await start();
      const room = await server.room(alice);
      const positions = [server.position];
      for (const step of [join, leave, join, leave]) {
        await step(bob, room);
        positions.push(server.position);
      }
      const asChanged = { changed: [bob.userId], left: [] };
      const asLeft = { changed: [], left: [bob.userId] };
      for (const [from, fromPosition] of positions.entries()) {
        for (const [to, toPosition] of positions.entries()) {
          if (to < from) continue;
          const wasJoined = from % 2 === 1;
          const isJoined = to % 2 === 1;
          // A user who is joined at both ends of the range, but not all the time, is reported as changed.
          const hasJoined = isJoined && to > from;
          const hasLeft = wasJoined && !isJoined;
          const expected = hasJoined ? asChanged : hasLeft ? asLeft : noChanges;
          assert.deepEqual(await changes(alice, fromPosition, toPosition), expected, `from ${from} to ${to}`);
        }
      }
    });

    it('returns the same changes from memory as from the database', async () => {
      await start();
      const { database, streams } = server.server;
      const { engine } = server.rooms;
      const { devices } = server.server.slice;
      const deps = { database, streams, devices, engine, signatureStream: server.e2ee.signatureStream };
      const smallMemory = new DeviceLists({ ...deps, capacity: 2 });
      const users = [alice, bob, carol];
      const rooms = [await server.room(alice), await server.room(bob)];
      const positions = [server.position];
      for (let step = 0; step < 30; step++) {
        const user = users[step % 3]!;
        const room = rooms[(step >> 1) % 2]!;
        const isJoined = (await engine.heads.get(room))?.membership(user.userId) === 'join';
        if (step % 5 === 4) await uploadKeys(user);
        else await (isJoined ? leave(user, room) : join(user, room));
        positions.push(server.position);
      }
      const sorted = ({ changed, left }: Awaited<ReturnType<typeof smallMemory.changes>>) => ({
        changed: changed.sort(),
        left: left.sort(),
      });
      for (const after of positions) {
        for (const { userId } of users) {
          const fromMemory = await server.e2ee.deviceLists.changes(userId, after, server.position);
          const fromDatabase = await smallMemory.changes(userId, after, server.position);
          assert.deepEqual(sorted(fromDatabase), sorted(fromMemory));
        }
      }
    });

    it('needs no database query when nothing has changed', async () => {
      await start();
      const room = await server.room(alice, bob);
      assert.deepEqual(await server.e2ee.deviceLists.roomsOf(alice.userId), [room]);
      assert.equal(server.e2ee.deviceLists.isQuiet(since), false);
      since = server.position;
      assert.equal(server.e2ee.deviceLists.isQuiet(since), true);
      await server.e2ee.deviceLists.changes(alice.userId, since, since);
      const { reads, scans } = server.server.database.statistics;
      await server.e2ee.deviceLists.changes(alice.userId, since, server.position);
      const after = server.server.database.statistics;
      assert.deepEqual([after.reads, after.scans], [reads, scans]);
    });
  });

  describe('GET /keys/changes', () => {
    it('returns the changes between two sync tokens', async () => {
      await start();
      const from = `s1_${server.position}`;
      const room = await server.room(alice, bob);
      await server.room(alice, carol);
      const between = `s1_${server.position}`;
      await leave(bob, room);
      const to = `s1_${server.position}`;
      const get = async (after: string, upTo: string) =>
        (await server.call(alice, 'GET', `/keys/changes?from=${after}&to=${upTo}`)).body;
      assert.deepEqual(await get(from, between), { changed: [bob.userId, carol.userId], left: [] });
      assert.deepEqual(await get(between, to), { changed: [], left: [bob.userId] });
      assert.deepEqual(await get(from, `s1_${server.position + 1000}`), {
        changed: [carol.userId],
        left: [],
      });
      assert.deepEqual(await get(to, from), noChanges);
      for (const query of ['', '?from=x&to=y', `?from=${from}`]) {
        assert.equal(codeOf(await server.call(alice, 'GET', `/keys/changes${query}`))[0], 400);
      }
    });
  });
});
