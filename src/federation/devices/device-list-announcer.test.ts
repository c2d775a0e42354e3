import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { ann, ReferenceRoom } from '../../../test/support/rooms/reference-room.ts';
import { E2eeServer, type UserWithKeys } from '../../../test/support/servers/e2ee-server.ts';
import { ClientIdentity } from '../../../test/support/users/client-device.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { EduOutbox } from '../sender/edus/edu-outbox.ts';
import { DeviceListAnnouncer } from './device-list-announcer.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let server: E2eeServer;
  let announcer: DeviceListAnnouncer;
  let alice: UserWithKeys;
  /** Defines a test that stops the announcer and the server at its end, before their database is removed. */
  const it = (title: string, run: () => Promise<void>) =>
    test(title, async () => {
      try {
        await run();
      } finally {
        await announcer.stop();
        await server.stop();
      }
    });

  async function start(sendDisplayNames = false): Promise<void> {
    server = await E2eeServer.start(open);
    await startAnnouncer(sendDisplayNames);
    alice = await server.user('alice');
  }

  async function startAnnouncer(sendDisplayNames = false): Promise<void> {
    const { database, streams, clock, slice } = server.server;
    announcer = await DeviceListAnnouncer.start({
      database,
      streams,
      clock,
      log: silentLogger,
      devices: slice.devices,
      query: server.e2ee.query,
      sendDisplayNames,
      engine: server.rooms.engine,
      outbox: await EduOutbox.open({ database, clock, isDestination: () => true }),
      serverName: 'test',
    });
  }

  const member = (userId: string, roomId: string, membership: string) =>
    server.rooms.engine.timeline.append(roomId, {
      type: 'm.room.member',
      stateKey: userId,
      sender: userId,
      content: { membership },
    });

  async function sharedRoom(...userIds: string[]): Promise<string> {
    const roomId = await server.room(alice);
    for (const userId of userIds) await member(userId, roomId, 'join');
    return roomId;
  }

  /** Returns the EDUs added to the outbox since the last call, as `[server, type, content]`. */
  async function takeSentEdus(): Promise<[string, string, JsonObject][]> {
    await announcer.settled();
    const rows = await server.server.database.transaction<
      { federation_outbox: { destination: string; id: number; type: string; content: string } },
      { destination: string; id: number; type: string; content: string }[]
    >(async (writer) => writer.deleteFrom('federation_outbox').returningAll().execute());
    return rows
      .sort((a, b) => a.id - b.id)
      .map(({ destination, type, content }) => [destination, type, JSON.parse(content) as JsonObject]);
  }

  const login = async () => server.device('alice');

  describe('DeviceListAnnouncer sends device list updates to other servers', () => {
    it('sends m.device_list_update to every server in a room with the user, and names in each update the previous one', async () => {
      await start();
      await sharedRoom('@bob:b', '@carol:c', '@dan:c');
      await takeSentEdus();
      const second = await login();
      const edus = await takeSentEdus();
      assert.deepEqual(new Set(edus.map(([server]) => server)), new Set(['b', 'c']));
      const toB = edus.filter(([server]) => server === 'b').map(([, , content]) => content);
      const toC = edus.filter(([server]) => server === 'c').map(([, , content]) => content);
      assert.deepEqual(toB, toC);
      let previous: unknown;
      for (const content of toB) {
        assert.deepEqual([content['user_id'], content['device_id']], [alice.userId, second.deviceId]);
        if (previous !== undefined) assert.deepEqual(content['prev_id'], [previous]);
        assert.ok((content['stream_id'] as number) > (content['prev_id'] as number[])[0]!);
        previous = content['stream_id'];
      }
      assert.deepEqual(toB.at(-1)!['keys'], second.deviceKeys);
      assert.equal(await announcer.streamIdOf(alice.userId), previous);
      await server.server.slice.devices.remove(alice.userId, [second.deviceId]);
      const [[, type, gone] = []] = await takeSentEdus();
      assert.equal(type, 'm.device_list_update');
      assert.deepEqual(
        [gone!['device_id'], gone!['deleted'], gone!['keys'], gone!['prev_id']],
        [second.deviceId, true, undefined, [previous]],
      );
    });

    for (const isStopped of [false, true]) {
      it(`repeats the last update for servers that become known when the partial state of a room is completed${isStopped ? ' while the announcer is stopped' : ''}`, async () => {
        await start();
        const room = new ReferenceRoom();
        for (const userId of ['@found:found.example', '@gone:gone.example', '@known:known.example'])
          room.member(userId, 'join');
        const { engine } = server.rooms;
        const { event, state, authChain } = room.join(alice.userId);
        const isMember = (one: (typeof state)[number]) => one.event.type === 'm.room.member';
        await engine.placement.enter(room.room, {
          event,
          state: state.filter((one) => !isMember(one)),
          authChain: [...authChain, ...state.filter((one) => isMember(one) && one.event.stateKey === ann)],
          partial: { servers: ['a.example', 'known.example'], from: 'a.example' },
        });
        await takeSentEdus();
        await login();
        const first = await takeSentEdus();
        assert.deepEqual(new Set(first.map(([name]) => name)), new Set(['a.example', 'known.example']));
        await engine.placement.addOutliers(room.room, [...authChain, ...state]);
        await engine.placement.place(room.roomId, room.get(room.member('@gone:gone.example', 'leave')));
        const complete = async () => {
          const stateBefore = state.map((one) => one.event.eventId);
          await engine.placement.completeState(room.roomId, { stateBefore });
        };
        if (isStopped) await announcer.stop();
        await complete();
        if (isStopped) await startAnnouncer();
        const later = await takeSentEdus();
        assert.deepEqual(
          new Set(later.map(([name]) => name)),
          new Set(['b.example', 'found.example', 'gone.example']),
        );
        assert.deepEqual(
          new Set(later.map(([, , content]) => content['stream_id'])),
          new Set([first.at(-1)![2]['stream_id']]),
        );
      });
    }

    it('assigns a stream_id to updates that no server receives, so that a server that returns notices the gap', async () => {
      await start();
      const roomId = await sharedRoom('@bob:b');
      await takeSentEdus();
      const before = await announcer.streamIdOf(alice.userId);
      await member('@bob:b', roomId, 'leave');
      await login();
      assert.deepEqual(await takeSentEdus(), []);
      await member('@bob:b', roomId, 'join');
      await server.server.slice.devices.rename(alice.userId, alice.deviceId, 'Another name');
      const [[, , content] = []] = await takeSentEdus();
      assert.ok((content!['prev_id'] as number[])[0]! > before);
    });

    it('sends display names only where the operator allows it [option: allow_device_name_lookup_over_federation]', async () => {
      for (const sendDisplayNames of [false, true]) {
        await start(sendDisplayNames);
        await sharedRoom('@bob:b');
        await takeSentEdus();
        await server.server.slice.devices.rename(alice.userId, alice.deviceId, 'Telephone');
        const [[, , content] = []] = await takeSentEdus();
        assert.equal(content!['device_display_name'], sendDisplayNames ? 'Telephone' : undefined);
        assert.equal((content!['keys'] as JsonObject).unsigned, undefined);
        if (sendDisplayNames) break;
        await announcer.stop();
        await server.stop();
      }
    });

    it('sends m.signing_key_update with the public cross-signing keys', async () => {
      await start();
      await sharedRoom('@bob:b');
      await takeSentEdus();
      const identity = new ClientIdentity(alice.userId);
      const keys = identity.keys();
      assert.equal((await server.call(alice, 'POST', '/keys/device_signing/upload', keys)).status, 200);
      const edus = await takeSentEdus();
      assert.deepEqual(
        edus.map(([, type]) => type),
        ['m.signing_key_update', 'm.device_list_update'],
      );
      const { master_key, self_signing_key, ...rest } = edus[0]![2];
      assert.deepEqual((master_key as JsonObject)['keys'], keys.master_key['keys']);
      assert.deepEqual(self_signing_key, keys.self_signing_key);
      assert.deepEqual(rest, { user_id: alice.userId });
      const signed = identity.signAs(identity.selfSigning, alice.deviceKeys);
      const body = { [alice.userId]: { [alice.deviceId]: signed } };
      assert.equal((await server.call(alice, 'POST', '/keys/signatures/upload', body)).status, 200);
      const [[, type, content] = []] = await takeSentEdus();
      assert.equal(type, 'm.device_list_update');
      assert.deepEqual((content!['keys'] as JsonObject).signatures, signed.signatures);
    });

    it('assigns a stream_id to changes of cross-signing keys, so that a server that did not receive them notices the gap', async () => {
      await start();
      const roomId = await sharedRoom('@bob:b');
      await takeSentEdus();
      await member('@bob:b', roomId, 'leave');
      const before = await announcer.streamIdOf(alice.userId);
      const keys = new ClientIdentity(alice.userId).keys();
      assert.equal((await server.call(alice, 'POST', '/keys/device_signing/upload', keys)).status, 200);
      assert.deepEqual(await takeSentEdus(), []);
      await member('@bob:b', roomId, 'join');
      await login();
      const [[, , content] = []] = await takeSentEdus();
      assert.ok((content!['prev_id'] as number[])[0]! > before);
    });

    it('announces the changes that were made while it was stopped when it starts again', async () => {
      await start();
      await sharedRoom('@bob:b');
      await takeSentEdus();
      await announcer.stop();
      const second = await login();
      await server.server.slice.devices.remove(alice.userId, [alice.deviceId]);
      await startAnnouncer();
      const announced = (await takeSentEdus()).map(([, , content]) => [
        content['device_id'],
        content['deleted'] ?? false,
      ]);
      assert.deepEqual(
        announced.sort(),
        [
          [alice.deviceId, true],
          [second.deviceId, false],
        ].sort(),
      );
      assert.equal(await server.rows('unannounced_devices'), 0);
      await announcer.stop();
      await startAnnouncer();
      assert.deepEqual(await takeSentEdus(), []);
    });

    it('announces hundreds of removed devices in one chain of updates', async () => {
      await start();
      await sharedRoom('@bob:b');
      // The announcer reads 200 changes in a round, so it needs two rounds.
      const ids = Array.from({ length: 210 }, (_, n) => `DEVICE${n}`);
      const { devices } = server.server.slice;
      for (const deviceId of ids)
        await devices.create({ userId: alice.userId, deviceId, displayName: undefined });
      await takeSentEdus();
      const before = await announcer.streamIdOf(alice.userId);
      await devices.remove(alice.userId, ids);
      const contents = (await takeSentEdus()).map(([, , content]) => content);
      assert.equal(contents.length, ids.length);
      let previous = before;
      for (const content of contents) {
        assert.deepEqual([content['prev_id'], content['deleted']], [[previous], true]);
        previous = content['stream_id'] as number;
      }
    });

    it('repeats the last update to a server that shares its first room with the user', async () => {
      await start();
      await login();
      const roomId = await server.room(await server.user('bob'));
      await member('@carol:c', roomId, 'join');
      await announcer.settled();
      await takeSentEdus();
      await server.rooms.memberships.join(alice.userId, roomId);
      const edus = (await takeSentEdus()).filter(([, , content]) => content['user_id'] === alice.userId);
      assert.deepEqual(
        edus.map(([server]) => server),
        ['c'],
      );
      assert.equal(edus[0]![2]['stream_id'], await announcer.streamIdOf(alice.userId));
      const other = await server.room(await server.user('dan'));
      await member('@carol:c', other, 'join');
      await takeSentEdus();
      await server.rooms.memberships.join(alice.userId, other);
      assert.deepEqual(
        (await takeSentEdus()).filter(([, , content]) => content['user_id'] === alice.userId),
        [],
      );
    });

    it('repeats the last update to servers of a room that the user joined while the announcer was stopped', async () => {
      await start();
      await login();
      const roomId = await server.room(await server.user('bob'));
      await member('@carol:c', roomId, 'join');
      await takeSentEdus();
      await announcer.stop();
      await server.rooms.memberships.join(alice.userId, roomId);
      await startAnnouncer();
      const edus = (await takeSentEdus()).filter(([, , content]) => content['user_id'] === alice.userId);
      assert.deepEqual(
        edus.map(([server, , content]) => [server, content['stream_id']]),
        [['c', await announcer.streamIdOf(alice.userId)]],
      );
    });
  });
});
