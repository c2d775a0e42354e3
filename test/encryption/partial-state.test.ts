import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../../src/protocol/index.ts';
import { eventually } from '../clients/eventually.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { RemoteUser } from '../support/other-servers/remote-users.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { SignedRoom } from '../support/rooms/signed-room.ts';
import { ClientDevice } from '../support/users/client-device.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const v1 = '/_matrix/federation/v1';

interface DeviceListChanges {
  readonly changed: Set<string>;
  readonly left: Set<string>;
}

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('devices of remote users in a room with partial state', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let remote: ScriptedServer;
    let anna: TestClient;
    let room: SignedRoom;
    let since: string;
    const remoteUsers = new Map<string, RemoteUser>();
    const queriedUsers: string[] = [];
    /** EDUs sent to the remote server. */
    const receivedEdus: { edu_type: string; content: JsonObject }[] = [];
    const stateReleased = Promise.withResolvers<void>();
    before(async () => {
      several = new SeveralServers(kind);
      a = await several.homeserver('a.test');
      remote = await several.scripted('far.test');
      anna = await a.registerClient('anna');
      room = new SignedRoom('11', { serverName: 'far.test', key: remote.key });
      room.setState('m.room.encryption', { algorithm: 'm.megolm.v1.aes-sha2' });
      for (const name of ['one', 'two', 'creator']) {
        const userId = `@${name}:far.test`;
        remoteUsers.set(userId, new RemoteUser(userId));
        if (userId !== room.creator) room.setState('m.room.member', { membership: 'join' }, userId, userId);
      }
      scriptRemoteServer();
      since = (await anna.sync()).next_batch;
      const { status, raw } = await anna.call('POST', `/join/${enc(room.roomId)}`, {}, { via: 'far.test' });
      assert.equal(status, 200, raw);
    });
    after(() => several.stop());

    /**
     * Scripts the remote server. It answers `/state_ids`, from which the members become known, only after
     * `stateReleased` resolves.
     */
    function scriptRemoteServer(): void {
      const stateEvents = [...room.state.values()].map(({ event }) => event);
      remote.on(`GET ${v1}/make_join/`, () => room.membershipTemplate(anna.id, 'join'));
      remote.on('PUT /_matrix/federation/v2/send_join/', () => {
        const state = stateEvents.filter(({ type }) => type !== 'm.room.member').map(({ pdu }) => pdu);
        const chain = stateEvents.filter(({ stateKey }) => stateKey === room.creator).map(({ pdu }) => pdu);
        return { state, auth_chain: chain, members_omitted: true, servers_in_room: ['far.test', 'a.test'] };
      });
      remote.on(`GET ${v1}/state_ids/`, async () => {
        await stateReleased.promise;
        const ids = stateEvents.map(({ eventId }) => eventId);
        return { pdu_ids: ids, auth_chain_ids: ids };
      });
      remote.on(`GET ${v1}/event/`, ({ path }) => {
        const event = stateEvents.find(({ eventId }) => path.endsWith(eventId));
        return event ? { origin: 'far.test', origin_server_ts: 1, pdus: [event.pdu] } : [404, {}];
      });
      remote.on(`PUT ${v1}/send/`, ({ body }) => {
        receivedEdus.push(...((body['edus'] ?? []) as unknown as typeof receivedEdus));
        return { pdus: {} };
      });
      remote.on(`POST ${v1}/user/keys/query`, ({ body }) => {
        const users = Object.keys(body['device_keys'] as object).map((userId) => remoteUsers.get(userId)!);
        queriedUsers.push(...users.map(({ userId }) => userId));
        return {
          device_keys: Object.fromEntries(
            users.map(({ userId, keys }) => [userId, Object.fromEntries(keys)]),
          ),
        };
      });
      remote.on(`GET ${v1}/user/devices/`, ({ path }) => {
        const userId = decodeURIComponent(path.split('/').at(-1)!);
        queriedUsers.push(userId);
        return remoteUsers.get(userId)!.deviceList();
      });
    }

    let transactions = 0;
    async function send(content: { pdus?: JsonObject[]; edus?: unknown[] }): Promise<void> {
      const body = { origin: 'far.test', origin_server_ts: Date.now(), pdus: [], edus: [], ...content };
      const url = `${v1}/send/t${transactions++}`;
      assert.equal((await remote.request('a.test', 'PUT', url, body as unknown as JsonObject)).status, 200);
    }
    const sendDeviceListUpdate = (content: JsonObject) =>
      send({ edus: [{ edu_type: 'm.device_list_update', content }] });

    async function devicesOf(userId: string): Promise<string[]> {
      const { device_keys } = await anna.do('POST', '/keys/query', { device_keys: { [userId]: [] } });
      return Object.keys((device_keys as Record<string, object>)[userId] ?? {}).sort();
    }

    /** Syncs until the condition holds, and collects device list changes. */
    async function syncUntil(
      condition: (lists: DeviceListChanges) => boolean,
      what: string,
    ): Promise<DeviceListChanges> {
      const lists = { changed: new Set<string>(), left: new Set<string>() };
      for (const end = performance.now() + 120_000; ; ) {
        const query = { since, timeout: 200 };
        const answer = (await anna.do('GET', '/sync', undefined, query)) as unknown as {
          next_batch: string;
          device_lists?: { changed?: string[]; left?: string[] };
        };
        since = answer.next_batch;
        for (const userId of answer.device_lists?.changed ?? []) lists.changed.add(userId);
        for (const userId of answer.device_lists?.left ?? []) lists.left.add(userId);
        if (condition(lists)) return lists;
        assert.ok(
          performance.now() < end,
          `${what}: ${JSON.stringify([...lists.changed, '-', ...lists.left])}`,
        );
      }
    }
    const firstUser = () => remoteUsers.get('@one:far.test')!;

    it('queries devices of remote users from their server for each /keys/query while the members of the room are not known', async () => {
      assert.deepEqual(await devicesOf(firstUser().userId), ['D0']);
      await sendDeviceListUpdate(firstUser().addDeviceUpdate());
      assert.deepEqual(await devicesOf(firstUser().userId), ['D0', 'D1']);
      assert.deepEqual(queriedUsers, [firstUser().userId, firstUser().userId]);
    });

    it('sends device list updates of local users to the servers in a room whose members are not known yet', async () => {
      const device = new ClientDevice(
        anna.id,
        String((await anna.do('GET', '/account/whoami'))['device_id']),
      );
      await anna.do('POST', '/keys/upload', { device_keys: device.deviceKeys() });
      await eventually('a device list update to the remote server', () =>
        receivedEdus.some(({ content }) => content['user_id'] === anna.id && content['keys'] !== undefined),
      );
    });

    it('reports all remote users in device_lists.changed once the members are known', async () => {
      stateReleased.resolve();
      const allUsers = [...remoteUsers.keys()];
      await syncUntil(
        ({ changed }) => allUsers.every((userId) => changed.has(userId)),
        'not all users are in device_lists.changed',
      );
      assert.deepEqual(await devicesOf(firstUser().userId), ['D0', 'D1']);
    });

    it('caches devices of remote users and updates them by device list updates once the members are known', async () => {
      // Device lists are fetched in the background, so that this one may not be cached yet.
      const queries = () => queriedUsers.filter((userId) => userId === firstUser().userId).length;
      await eventually('the device list to be cached', async () => {
        const previousQueries = queries();
        await devicesOf(firstUser().userId);
        return queries() === previousQueries;
      });
      const queriesBefore = queries();
      await sendDeviceListUpdate(firstUser().addDeviceUpdate());
      await syncUntil(
        ({ changed }) => changed.has(firstUser().userId),
        'the new device is not in device_lists.changed',
      );
      assert.deepEqual(await devicesOf(firstUser().userId), ['D0', 'D1', 'D2']);
      assert.equal(queries(), queriesBefore);
    });

    it('reports a remote user in device_lists.left when the user leaves the room', async () => {
      const leave = room.setState(
        'm.room.member',
        { membership: 'leave' },
        firstUser().userId,
        firstUser().userId,
      );
      await send({ pdus: [leave.event.pdu] });
      const { left } = await syncUntil((lists) => lists.left.size > 0, 'no user is in device_lists.left');
      assert.deepEqual([...left], [firstUser().userId]);
    });
  });
});
