import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { ClientDevice, ClientIdentity } from '../../../test/support/client-device.ts';
import { forServerDatabases } from '../../../test/support/databases.ts';
import { DistantKeys, type DistantUser } from '../../../test/support/distant-keys.ts';
import { E2eeServer, type KeyedPerson } from '../../../test/support/e2ee-server.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { RemoteDeviceLists } from './remote-device-lists.ts';

type Keys = Record<string, Record<string, JsonObject>>;

forServerDatabases(import.meta.url, (open) => {
  let server: E2eeServer;
  let distant: DistantKeys;
  let lists: RemoteDeviceLists;
  let alice: KeyedPerson;
  let bob: DistantUser;
  afterEach(() => server.stop());

  async function start(): Promise<void> {
    distant = new DistantKeys();
    server = await E2eeServer.start(open, { remote: distant });
    lists = server.e2ee.remoteLists!;
    alice = await server.user('alice');
    bob = distant.user('@bob:elsewhere');
  }

  const member = (userId: string, roomId: string, membership: string) =>
    server.rooms.engine.timeline.append(roomId, {
      type: 'm.room.member',
      stateKey: userId,
      sender: userId,
      content: { membership },
    });

  /** A room of Alice in which Bob is, and the list of whose devices is known here. */
  async function acquainted(): Promise<string> {
    await start();
    const roomId = await server.room(alice);
    await member(bob.userId, roomId, 'join');
    await query();
    await fetched();
    distant.asked = [];
    return roomId;
  }

  async function fetched(): Promise<void> {
    await lists.settled();
    server.server.clock.advance(10_000);
    await server.jobs.settled();
  }

  async function query(userId = bob.userId, devices: readonly string[] = []) {
    const { status, body } = await server.call(alice, 'POST', '/keys/query', {
      device_keys: { [userId]: devices },
    });
    assert.equal(status, 200);
    return {
      isNamed: userId in (body['device_keys'] as Keys),
      devices: (body['device_keys'] as Keys)[userId] ?? {},
      master: (body['master_keys'] as Record<string, JsonObject>)[userId],
      selfSigning: (body['self_signing_keys'] as Record<string, JsonObject>)[userId],
      failures: Object.keys(body['failures'] as object),
    };
  }

  const idsOf = async () => Object.keys((await query()).devices).sort();
  const changedSince = async (mark: number) =>
    (await server.e2ee.deviceLists.changes(alice.userId, mark, server.position)).changed;

  describe('device lists of other servers', () => {
    it('are asked for once, and then known here, also when the server is gone', async () => {
      await start();
      const roomId = await server.room(alice);
      await member(bob.userId, roomId, 'join');
      const first = await query();
      assert.deepEqual(Object.keys(first.devices), ['D0']);
      await fetched();
      assert.deepEqual(distant.asked, ['query elsewhere', `devices ${bob.userId}`]);
      distant.isDown = true;
      const known = await query();
      assert.deepEqual(known.devices['D0']!['unsigned'], { device_display_name: 'D0' });
      const { unsigned: _unsigned, ...keys } = known.devices['D0']!;
      assert.deepEqual(keys, bob.keys.get('D0'));
      assert.deepEqual(known.master!['keys'], bob.identity.masterKey()['keys']);
      assert.deepEqual(known.selfSigning, bob.identity.selfSigningKey());
      assert.deepEqual(known.failures, []);
      assert.deepEqual((await query(bob.userId, ['OTHER'])).devices, {});
      assert.equal(distant.asked.length, 2);
    });

    it('are asked for again by clients who were told something else before they were here', async () => {
      await start();
      const roomId = await server.room(alice);
      await member(bob.userId, roomId, 'join');
      distant.isDown = true;
      await lists.want([bob.userId]);
      await fetched();
      distant.isDown = false;
      assert.deepEqual(await idsOf(), ['D0']);
      const mark = server.position;
      const update = bob.update();
      server.server.clock.advance(60_000);
      await fetched();
      await lists.takeUpdate('elsewhere', update);
      assert.deepEqual(await changedSince(mark), [bob.userId]);
      distant.isDown = true;
      assert.deepEqual(await idsOf(), ['D0', 'D1']);
    });

    it('are not kept of users who share no room', async () => {
      await start();
      assert.deepEqual(await idsOf(), ['D0']);
      assert.deepEqual(await idsOf(), ['D0']);
      await fetched();
      assert.deepEqual(distant.asked, ['query elsewhere', 'query elsewhere']);
      await lists.takeUpdate('elsewhere', bob.update());
      assert.equal(await server.rows('remote_device_lists'), 0);
    });

    it('follow what their server sends, without asking it', async () => {
      await acquainted();
      const mark = server.position;
      await lists.takeUpdate('elsewhere', bob.update());
      assert.deepEqual(await changedSince(mark), [bob.userId]);
      assert.deepEqual(await idsOf(), ['D0', 'D1']);
      await lists.takeUpdate('elsewhere', bob.update({ device_display_name: 'Telephone' }));
      assert.deepEqual((await query()).devices['D2']!['unsigned'], { device_display_name: 'Telephone' });
      await lists.takeUpdate('elsewhere', bob.deletion('D1'));
      assert.deepEqual(await idsOf(), ['D0', 'D2']);
      assert.deepEqual(distant.asked, []);
    });

    it('take what follows several updates, and what comes twice once', async () => {
      await acquainted();
      const [one, other] = [bob.update(), { ...bob.update(), prev_id: [1] }];
      await lists.takeUpdate('elsewhere', one);
      await lists.takeUpdate('elsewhere', other);
      await lists.takeUpdate('elsewhere', { ...bob.update(), prev_id: [2, 3] });
      assert.deepEqual(await idsOf(), ['D0', 'D1', 'D2', 'D3']);
      const mark = server.position;
      await lists.takeUpdate('elsewhere', { ...one, deleted: true });
      assert.deepEqual(await changedSince(mark), []);
      await fetched();
      assert.deepEqual(await idsOf(), ['D0', 'D1', 'D2', 'D3']);
      assert.deepEqual(distant.asked, []);
    });

    for (const [what, more] of [
      ['an update was missed', { prev_id: [77] }],
      ['an update follows none', { prev_id: [] }],
      ['an update does not say what it follows', { prev_id: undefined }],
      ['an update has no id', { stream_id: 'x' }],
      ['the ids of updates go back', { stream_id: 0 }],
      ['an update follows too many', { prev_id: Array.from({ length: 1_000 }, () => 1) }],
    ] as const) {
      it(`are fetched anew when ${what}`, async () => {
        await acquainted();
        bob.addDevice();
        const mark = server.position;
        await lists.takeUpdate('elsewhere', bob.update(more as JsonObject));
        assert.deepEqual(await changedSince(mark), [bob.userId]);
        await fetched();
        assert.deepEqual(distant.asked, [`devices ${bob.userId}`]);
        assert.deepEqual(await idsOf(), ['D0', 'D1', 'D2']);
        assert.equal(distant.asked.length, 1);
        await lists.takeUpdate('elsewhere', bob.update());
        assert.deepEqual(await idsOf(), ['D0', 'D1', 'D2', 'D3']);
        assert.equal(distant.asked.length, 1);
      });
    }

    it('are not relied on while they are stale: the server is asked, and clients hear of it later', async () => {
      await acquainted();
      distant.isDown = true;
      bob.addDevice();
      await lists.takeUpdate('elsewhere', bob.update({ prev_id: [77] }));
      await server.jobs.settled();
      const old = await query();
      assert.deepEqual([old.isNamed, old.failures], [false, ['elsewhere']]);
      distant.isDown = false;
      const mark = server.position;
      assert.deepEqual(await idsOf(), ['D0', 'D1', 'D2']);
      await lists.serverIsBack('elsewhere');
      await fetched();
      assert.deepEqual(await changedSince(mark), [bob.userId]);
      distant.isDown = true;
      assert.deepEqual(await idsOf(), ['D0', 'D1', 'D2']);
    });

    it('are fetched again and again until it succeeds, also after a restart', async () => {
      await acquainted();
      distant.isDown = true;
      await lists.takeUpdate('elsewhere', bob.update({ prev_id: [77] }));
      for (let attempt = 0; attempt < 5; attempt++) {
        await server.jobs.settled();
        server.server.clock.advance(60_000);
      }
      await server.jobs.settled();
      const { length } = distant.asked;
      assert.ok(length >= 3 && length <= 7, `${length} attempts`);
      const [job] = await server.jobs.list({ kind: 'e2ee/fetch-device-list' });
      assert.deepEqual([job?.key, job?.state], [bob.userId, 'waiting']);
      distant.isDown = false;
      server.server.clock.advance(3_600_000);
      await server.jobs.settled();
      assert.deepEqual(await idsOf(), ['D0', 'D1']);
    });

    it('are fetched one after the other, however many updates there are meanwhile', async () => {
      await acquainted();
      let open = 0;
      let most = 0;
      let go = () => {};
      distant.answer = async (user) => {
        most = Math.max(most, ++open);
        await new Promise<void>((resolve) => {
          go = resolve;
        });
        open--;
        return user.list();
      };
      for (let flood = 0; flood < 50; flood++) {
        await lists.takeUpdate('elsewhere', bob.update({ prev_id: [7_000 + flood] }));
      }
      distant.answer = undefined;
      go();
      await fetched();
      assert.equal(most, 1);
      assert.ok(distant.asked.length <= 3, `${distant.asked.length} questions`);
      assert.equal((await idsOf()).length, 51);
      assert.ok(distant.asked.length <= 3);
    });

    it('that were asked for before the last update are not taken for current', async () => {
      await acquainted();
      let answered = () => {};
      distant.answer = (user) => {
        const before = user.list();
        return new Promise((resolve) => {
          answered = () => resolve(before);
        });
      };
      await lists.takeUpdate('elsewhere', bob.update({ prev_id: [77] }));
      while (distant.asked.length === 0) await new Promise(setImmediate);
      await lists.takeUpdate('elsewhere', bob.update());
      distant.answer = undefined;
      answered();
      await fetched();
      assert.equal(distant.asked.length, 2);
      distant.isDown = true;
      assert.deepEqual(await idsOf(), ['D0', 'D1', 'D2']);
    });

    it('take nothing from servers about users of others, and nothing unsound', async () => {
      await acquainted();
      const mark = server.position;
      await lists.takeUpdate('evil', bob.update());
      await lists.takeUpdate('elsewhere', { ...bob.update(), user_id: alice.userId });
      await lists.takeSigningKeys('evil', { user_id: bob.userId, master_key: bob.identity.masterKey() });
      for (const device_id of [undefined, 5, '', 'x\0y', 'x'.repeat(256)]) {
        await lists.takeUpdate('elsewhere', { ...bob.update(), device_id } as JsonObject);
      }
      assert.deepEqual(await changedSince(mark), []);
      assert.deepEqual(distant.asked, []);
    });

    it('leave out keys that are of another user or device, or too large, and signatures of others', async () => {
      await acquainted();
      const eve = new ClientDevice('@eve:evil', 'D1');
      const other = new ClientDevice(bob.userId, 'OTHER');
      const large = new ClientDevice(bob.userId, 'D3').deviceKeys({ more: 'x'.repeat(20_000) });
      let deep: JsonObject = {};
      for (let depth = 0; depth < 50; depth++) deep = { deep };
      const tooDeep = new ClientDevice(bob.userId, 'D4').deviceKeys({ deep });
      bob.streamId = 1;
      for (const keys of [eve.deviceKeys(), other.deviceKeys(), large, tooDeep]) {
        await lists.takeUpdate('elsewhere', bob.update({ keys }));
      }
      const good = bob.update();
      const keys = good['keys'] as JsonObject;
      const signatures = { ...(keys.signatures as JsonObject), '@eve:evil': { 'ed25519:x': 'x' } };
      await lists.takeUpdate('elsewhere', { ...good, keys: { ...keys, signatures } });
      const { devices } = await query();
      assert.deepEqual(Object.keys(devices), ['D0', 'D5']);
      assert.deepEqual(Object.keys(devices['D5']!.signatures as object), [bob.userId]);
      assert.deepEqual(distant.asked, []);
    });

    it('have new cross-signing keys when the server says so', async () => {
      await acquainted();
      bob.identity = new ClientIdentity(bob.userId);
      const mark = server.position;
      await lists.takeSigningKeys('elsewhere', {
        user_id: bob.userId,
        master_key: bob.identity.masterKey(),
        self_signing_key: bob.identity.selfSigningKey(),
      });
      assert.deepEqual(await changedSince(mark), [bob.userId]);
      const { master, selfSigning } = await query();
      assert.deepEqual(master!['keys'], bob.identity.masterKey()['keys']);
      assert.deepEqual(selfSigning!['keys'], bob.identity.selfSigningKey()['keys']);
      const eves = new ClientIdentity('@eve:evil');
      await lists.takeSigningKeys('elsewhere', { user_id: bob.userId, master_key: eves.masterKey() });
      assert.deepEqual((await query()).master, master);
    });

    it('of thousands of devices are cut, and do no harm', async () => {
      await acquainted();
      const [device] = bob.keys.values();
      const named = (n: number): JsonObject => ({ ...device, device_id: `X${n}` });
      distant.answer = (user) => ({
        ...user.list(),
        devices: Array.from({ length: 6_000 }, (_, n) => ({ device_id: `X${n}`, keys: named(n) })),
      });
      await lists.takeUpdate('elsewhere', bob.update({ prev_id: [] }));
      await fetched();
      assert.equal((await idsOf()).length, 2_000);
      await lists.takeUpdate('elsewhere', bob.update());
      assert.equal((await idsOf()).length, 2_000);
    });

    it('are asked for again when the answer makes no sense', async () => {
      await acquainted();
      for (const answer of [{}, { user_id: '@eve:evil', devices: [] }, { user_id: bob.userId, devices: 5 }]) {
        distant.answer = () => answer as JsonObject;
        await lists.takeUpdate('elsewhere', bob.update({ prev_id: [] }));
        await server.jobs.settled();
        server.server.clock.advance(10_000);
      }
      distant.answer = undefined;
      server.server.clock.advance(3_600_000);
      await server.jobs.settled();
      distant.isDown = true;
      assert.deepEqual(await idsOf(), ['D0', 'D1', 'D2', 'D3']);
    });

    it('are dropped when the last room that is shared is left, and fetched anew after that', async () => {
      const roomId = await acquainted();
      const other = await server.room(alice);
      await member(bob.userId, other, 'join');
      await member(bob.userId, roomId, 'leave');
      await lists.settled();
      assert.equal(await server.rows('remote_device_lists'), 1);
      await member(bob.userId, other, 'leave');
      await lists.settled();
      assert.deepEqual(
        [await server.rows('remote_device_lists'), await server.rows('remote_devices')],
        [0, 0],
      );
      bob.update();
      await member(bob.userId, other, 'join');
      assert.deepEqual(await idsOf(), ['D0', 'D1']);
      await fetched();
      await server.rooms.memberships.leave(alice.userId, other);
      await lists.settled();
      assert.equal(await server.rows('remote_device_lists'), 0);
    });

    it('of users who are gone are looked for once a day, should a crash have left them behind', async () => {
      await acquainted();
      const { database } = server.server;
      await database.transaction<{ remote_device_lists: Record<string, unknown> }, unknown>((writer) =>
        writer
          .insertInto('remote_device_lists')
          .values({ user_id: '@gone:far', server: 'far', stream_ids: '[]', stale: 0, revision: 1 })
          .execute(),
      );
      server.server.clock.advance(86_400_000);
      await server.jobs.settled();
      assert.equal(await server.rows('remote_device_lists'), 1);
      assert.deepEqual(await idsOf(), ['D0']);
      assert.deepEqual(distant.asked, []);
    });

    it('of those who come into an encrypted room are fetched before anybody asks', async () => {
      await start();
      const roomId = await server.room(alice);
      await server.rooms.engine.timeline.append(roomId, {
        type: 'm.room.encryption',
        stateKey: '',
        sender: alice.userId,
        content: { algorithm: 'm.megolm.v1.aes-sha2' },
      });
      await member(bob.userId, roomId, 'join');
      await fetched();
      assert.deepEqual(distant.asked, [`devices ${bob.userId}`]);
      distant.isDown = true;
      assert.deepEqual(await idsOf(), ['D0']);
    });

    it('are fetched anew when a device shows itself that they do not have', async () => {
      await acquainted();
      await lists.missed(bob.userId, 'D0');
      await fetched();
      assert.deepEqual(distant.asked, []);
      const deviceId = bob.addDevice();
      await lists.missed(bob.userId, deviceId);
      await fetched();
      assert.deepEqual(distant.asked, [`devices ${bob.userId}`]);
      assert.deepEqual(await idsOf(), ['D0', deviceId]);
    });
  });
});
