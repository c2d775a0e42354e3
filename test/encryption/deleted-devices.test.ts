import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Clock, systemClock } from '../../src/kernel/clock.ts';
import { type DatabaseContents, openContents } from '../support/databases/database-contents.ts';
import { serverDatabases } from '../support/databases/databases.ts';
import { startTestServer, type TestServer, type TestUser } from '../support/servers/server.ts';
import { ClientDevice, ClientIdentity } from '../support/users/client-device.ts';

const client = '/_matrix/client/v3';
const slidingSync = '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync';
const dehydrated = '/_matrix/client/unstable/org.matrix.msc3814.v1/dehydrated_device';
const curve = 'signed_curve25519';
const password = 'correct horse';
const hour = 3_600_000;
const enc = encodeURIComponent;

/** Tables that may name a device that is gone, and why. */
const tablesThatMayName: Readonly<Record<string, string>> = {
  announced_device_lists:
    'the last change that other servers were told of, which may be that a device is gone',
  user_ips: 'where a user was seen, for as long as `user_ips_max_age` says, and never after a deactivation',
};

/** Tables with a column `device_id` in which there is nothing that must be there before, and why. */
const exemptTables: Readonly<Record<string, string>> = {
  ...tablesThatMayName,
  remote_devices: 'devices of users of other servers',
  unannounced_devices: 'what other servers are still to be told: empty once they are',
};

for (const database of serverDatabases(import.meta.url)) {
  describe(`a device that is gone, on ${database}`, () => {
    let server: TestServer;
    let contents: DatabaseContents;
    let elapsed = 0;
    /** Time can be let pass; timers take as long as ever. */
    const clock: Clock = {
      now: () => systemClock.now() + elapsed,
      monotonic: () => systemClock.monotonic() + elapsed,
      setTimer: (delay, callback) => systemClock.setTimer(delay, callback),
    };
    before(async () => {
      server = await startTestServer({
        database,
        clock,
        config: { devices: { delete_stale_devices_after: 36 * hour } },
      });
      contents = await openContents(server.databaseOptions);
    });
    after(async () => {
      await contents?.close();
      await server?.stop();
    });

    async function call(as: TestUser, method: string, path: string, body?: unknown, query = {}) {
      const url = path.startsWith('/_') ? path : client + path;
      const answer = await server.api(method, url, { token: as.token, query, ...(body ? { body } : {}) });
      assert.equal(answer.status, 200, `${method} ${path}: ${answer.raw}`);
      return answer.body;
    }

    /** One more device of a user, with a refresh token. */
    async function logIn(user: string, deviceId: string): Promise<TestUser> {
      const body = {
        type: 'm.login.password',
        identifier: { type: 'm.id.user', user },
        password,
        device_id: deviceId,
        initial_device_display_name: `The name of ${deviceId}`,
        refresh_token: true,
      };
      const answer = await server.api('POST', `${client}/login`, { body });
      assert.equal(answer.status, 200, answer.raw);
      return { userId: String(answer.body['user_id']), deviceId, token: String(answer.body['access_token']) };
    }

    /** Goes through a stage with the password where that is asked for. */
    async function withPassword(as: TestUser, method: string, path: string, body: object): Promise<void> {
      const first = await server.api(method, client + path, { token: as.token, body });
      if (first.status === 200) return;
      assert.equal(first.status, 401, first.raw);
      const identifier = { type: 'm.id.user', user: as.userId };
      const auth = { type: 'm.login.password', identifier, password, session: first.body['session'] };
      await call(as, method, path, { ...body, auth });
    }

    /** Does with a device all that leaves something behind in the database. */
    async function useDevice(device: TestUser, other: TestUser): Promise<void> {
      const keys = new ClientDevice(device.userId, device.deviceId);
      await call(device, 'POST', '/keys/upload', {
        device_keys: keys.deviceKeys(),
        one_time_keys: keys.oneTimeKeys(5),
        fallback_keys: keys.oneTimeKeys(1, 50, { fallback: true }),
      });
      const identity = new ClientIdentity(device.userId);
      await withPassword(device, 'POST', '/keys/device_signing/upload', {
        ...identity.keys(),
        master_key: keys.sign(identity.masterKey()),
      });
      await call(other, 'POST', '/keys/claim', {
        one_time_keys: { [device.userId]: { [device.deviceId]: curve } },
      });
      const messages = { [device.userId]: { [device.deviceId]: { n: 1 } } };
      await call(other, 'PUT', `/sendToDevice/m.x/to-${device.deviceId}`, { messages });
      await call(device, 'PUT', '/sendToDevice/m.x/t', { messages: { [other.userId]: { '*': { n: 1 } } } });
      const { room_id: roomId } = await call(device, 'POST', '/createRoom', {});
      const send = `/rooms/${enc(String(roomId))}/send/m.room.message/t`;
      await call(device, 'PUT', send, { msgtype: 'm.text', body: 'hello' });
      const lists = { all: { ranges: [[0, 9]], required_state: [], timeline_limit: 1 } };
      await call(device, 'POST', slidingSync, { lists, conn_id: 'c' }, { timeout: '0' });
      await call(device, 'GET', '/sync', undefined, { timeout: '0' });
    }

    /** Gives a user a dehydrated device. */
    async function dehydrate(user: TestUser, deviceId: string): Promise<void> {
      const dry = new ClientDevice(user.userId, deviceId);
      await call(user, 'PUT', dehydrated, {
        device_id: deviceId,
        device_data: { algorithm: 'org.matrix.msc3814.v2' },
        device_keys: dry.deviceKeys(),
        one_time_keys: dry.oneTimeKeys(2),
      });
    }

    /** The tables with a column for the id of a device, those included that are made later than this test. */
    async function deviceTables(): Promise<string[]> {
      const columns = await contents.columns();
      const tables = [...columns.keys()].filter((table) => columns.get(table)?.includes('device_id'));
      assert.ok(tables.length >= 12, String(tables));
      return tables.filter((table) => !Object.hasOwn(exemptTables, table));
    }

    /** The tables in which a device is named, wherever that may be, but for those that may name it. */
    async function tablesThatName(deviceId: string): Promise<string[]> {
      const named: string[] = [];
      for (const table of (await contents.columns()).keys()) {
        if (Object.hasOwn(tablesThatMayName, table)) continue;
        const rows = await contents.rows(table);
        if (rows.some((row) => Object.values(row).some((value) => String(value).includes(deviceId))))
          named.push(table);
      }
      return named;
    }

    async function waitUntilNowhere(deviceId: string): Promise<void> {
      for (const end = performance.now() + 60_000; ; ) {
        const named = await tablesThatName(deviceId);
        // Other servers are told of it after the answer.
        const leftOver = named.filter((table) => table !== 'unannounced_devices');
        assert.deepEqual(leftOver, [], `something is left of ${deviceId}`);
        if (named.length === 0) return;
        assert.ok(performance.now() < end, 'other servers are not told');
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }

    let users = 0;
    /** Somebody with a device that is going to go, of which there is something in every table. */
    async function userWithDevices() {
      const name = `alice${++users}`;
      const kept = await server.register(name, password);
      const gone = await logIn(name, `GONE-${users}-DEVICE`);
      await dehydrate(kept, `DRY-${users}-DEVICE`);
      await useDevice(gone, kept);
      await server.restart(); // addresses go to the disk
      const named = new Set([
        ...(await tablesThatName(gone.deviceId)),
        ...(await tablesThatName(`DRY-${users}-DEVICE`)),
      ]);
      for (const table of await deviceTables()) {
        assert.ok(
          named.has(table),
          `${table} has a device_id: this test must put something there, or say why not`,
        );
      }
      return { kept, gone, dry: `DRY-${users}-DEVICE` };
    }

    for (const [how, remove] of [
      ['that logs out', (gone) => call(gone, 'POST', '/logout', {})],
      ['that was deleted', (gone, kept) => withPassword(kept, 'DELETE', `/devices/${gone.deviceId}`, {})],
      [
        'that was deleted with others',
        (gone, kept) => withPassword(kept, 'POST', '/delete_devices', { devices: [gone.deviceId, 'OTHER'] }),
      ],
      [
        'that a new password logs out',
        (_gone, kept) =>
          withPassword(kept, 'POST', '/account/password', { new_password: 'x', logout_devices: true }),
      ],
    ] as readonly [string, (gone: TestUser, kept: TestUser) => Promise<unknown>][]) {
      it(`${how} leaves nothing behind`, async () => {
        const { kept, gone } = await userWithDevices();
        await remove(gone, kept);
        await waitUntilNowhere(gone.deviceId);
        assert.equal(
          (await server.api('GET', `${client}/account/whoami`, { token: gone.token })).status,
          401,
        );
        await call(kept, 'GET', '/account/whoami');
      });
    }

    for (const [how, remove] of [
      ['logs out everywhere', (gone) => call(gone, 'POST', '/logout/all', {})],
      ['deactivates their account', (gone) => withPassword(gone, 'POST', '/account/deactivate', {})],
    ] as readonly [string, (gone: TestUser) => Promise<unknown>][]) {
      it(`of somebody who ${how} leaves nothing behind, nor does any other of theirs`, async () => {
        const { kept, gone, dry } = await userWithDevices();
        await remove(gone);
        for (const deviceId of [gone.deviceId, kept.deviceId, dry]) await waitUntilNowhere(deviceId);
        const addresses = (await contents.rows('user_ips')).filter(({ user_id }) => user_id === gone.userId);
        assert.equal(addresses.length > 0, how === 'logs out everywhere');
      });
    }

    it('that was dehydrated and is deleted leaves nothing behind', async () => {
      const { kept, dry } = await userWithDevices();
      await call(kept, 'DELETE', dehydrated);
      await waitUntilNowhere(dry);
    });

    it('that nobody has used for long leaves nothing behind [option: delete_stale_devices_after]', async () => {
      const { kept, gone } = await userWithDevices();
      elapsed += 30 * hour;
      await call(kept, 'GET', '/account/whoami');
      elapsed += 30 * hour;
      await server.restart();
      for (
        const end = performance.now() + 60_000;
        (await tablesThatName(gone.deviceId)).includes('devices');
      ) {
        assert.ok(performance.now() < end, 'it stays');
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      await waitUntilNowhere(gone.deviceId);
      await call(kept, 'GET', '/account/whoami');
    });
  });
}
