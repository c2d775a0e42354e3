import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Clock, systemClock } from '../../src/kernel/clock.ts';
import { eventually } from '../clients/eventually.ts';
import { type DatabaseContents, openContents } from '../support/databases/database-contents.ts';
import { selectedDatabases } from '../support/databases/databases.ts';
import { startTestServer, type TestServer, type TestUser } from '../support/servers/server.ts';
import { ClientDevice, ClientIdentity } from '../support/users/client-device.ts';

const clientApi = '/_matrix/client/v3';
const slidingSync = '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync';
const dehydrated = '/_matrix/client/unstable/org.matrix.msc3814.v1/dehydrated_device';
const curve = 'signed_curve25519';
const password = 'correct horse';
const hour = 3_600_000;
const enc = encodeURIComponent;

/** Tables that may name a deleted device, with the reason. */
const tablesThatMayName: Readonly<Record<string, string>> = {
  announced_device_lists: 'the last device list update sent to other servers; it may announce the deletion',
  oauth_codes: 'authorization codes; they expire after five minutes',
  oauth_device_grants: 'logins that a device has begun; they expire after some minutes',
  user_ips: 'addresses of the user, until `user_ips_max_age` or a deactivation deletes them',
};

/** Tables with a column `device_id` in which a test need not create a row of its device, with the reason. */
const exemptTables: Readonly<Record<string, string>> = {
  ...tablesThatMayName,
  remote_devices: 'devices of remote users',
  unannounced_devices: 'device list changes that are pending for other servers, empty once they are sent',
};

for (const database of selectedDatabases(import.meta.url)) {
  describe(`the database after a device is deleted, on ${database}`, () => {
    let server: TestServer;
    let contents: DatabaseContents;
    let elapsed = 0;
    /** A clock that a test can advance; timers run in real time. */
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
      const url = path.startsWith('/_') ? path : clientApi + path;
      const answer = await server.api(method, url, { token: as.token, query, ...(body ? { body } : {}) });
      assert.equal(answer.status, 200, `${method} ${path}: ${answer.raw}`);
      return answer.body;
    }

    /** Logs the user in on another device, with a refresh token. */
    async function logIn(user: string, deviceId: string): Promise<TestUser> {
      const body = {
        type: 'm.login.password',
        identifier: { type: 'm.id.user', user },
        password,
        device_id: deviceId,
        initial_device_display_name: `The name of ${deviceId}`,
        refresh_token: true,
      };
      const answer = await server.api('POST', `${clientApi}/login`, { body });
      assert.equal(answer.status, 200, answer.raw);
      return { userId: String(answer.body['user_id']), deviceId, token: String(answer.body['access_token']) };
    }

    /** Sends a request, and again with the password when the server requires it. */
    async function withPassword(as: TestUser, method: string, path: string, body: object): Promise<void> {
      const first = await server.api(method, clientApi + path, { token: as.token, body });
      if (first.status === 200) return;
      assert.equal(first.status, 401, first.raw);
      const identifier = { type: 'm.id.user', user: as.userId };
      const auth = { type: 'm.login.password', identifier, password, session: first.body['session'] };
      await call(as, method, path, { ...body, auth });
    }

    /** Uses a device in every way that writes rows for it. */
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
      await call(device, 'POST', '/pushers/set', {
        app_id: 'im.example',
        app_display_name: 'Example',
        device_display_name: `The phone of ${device.deviceId}`,
        pushkey: `key of ${device.deviceId}`,
        kind: 'http',
        lang: 'en',
        data: { url: 'https://push.example/_matrix/push/v1/notify' },
      });
      await addLoginRows({ user_id: device.userId, device_id: device.deviceId });
    }

    /** Adds the rows of a device that was logged in by OAuth 2.0 and by an identity provider. */
    async function addLoginRows(device: { user_id: string; device_id: string }): Promise<void> {
      const hash = `hash of ${device.device_id}`;
      await contents.insert('oauth_sessions', { ...device, client_id: 'client', scope: 'scope' });
      await contents.insert('oauth_exchanged_tokens', { ...device, hash, exchanged_at: clock.now() });
      await contents.insert('provider_sessions', { ...device, auth_provider: 'oidc', external_id: 'id' });
    }

    /** Creates a dehydrated device of a user. */
    async function dehydrate(user: TestUser, deviceId: string): Promise<void> {
      const device = new ClientDevice(user.userId, deviceId);
      await call(user, 'PUT', dehydrated, {
        device_id: deviceId,
        device_data: { algorithm: 'org.matrix.msc3814.v2' },
        device_keys: device.deviceKeys(),
        one_time_keys: device.oneTimeKeys(2),
      });
    }

    /** Tables with a column `device_id`, except exempt ones; tables of later migrations are included. */
    async function deviceTables(): Promise<string[]> {
      const columns = await contents.columns();
      const tables = [...columns.keys()].filter((table) => columns.get(table)?.includes('device_id'));
      assert.ok(tables.length >= 12, String(tables));
      return tables.filter((table) => !Object.hasOwn(exemptTables, table));
    }

    /** Tables with a value that contains the device id, except the tables that may name it. */
    async function tablesThatName(deviceId: string): Promise<string[]> {
      const tablesWithRows: string[] = [];
      for (const table of (await contents.columns()).keys()) {
        if (Object.hasOwn(tablesThatMayName, table)) continue;
        const rows = await contents.rows(table);
        if (rows.some((row) => Object.values(row).some((value) => String(value).includes(deviceId))))
          tablesWithRows.push(table);
      }
      return tablesWithRows;
    }

    /** Waits until no table names the device, except the tables that may name it. */
    async function waitUntilDeleted(deviceId: string): Promise<void> {
      await eventually('the pending device list change to be sent', async () => {
        const tables = await tablesThatName(deviceId);
        // Pending device list changes are sent to other servers after the response.
        const leftOver = tables.filter((table) => table !== 'unannounced_devices');
        assert.deepEqual(leftOver, [], `rows of ${deviceId} are left`);
        return tables.length === 0;
      });
    }

    let users = 0;
    /**
     * Makes a user with two devices and a dehydrated device. The test will delete the device `deleted`. Each of
     * `deviceTables` has a row of `deleted` or of the dehydrated device.
     */
    async function userWithDevices() {
      const name = `alice${++users}`;
      const remaining = await server.register(name, password);
      const deleted = await logIn(name, `GONE-${users}-DEVICE`);
      await dehydrate(remaining, `DRY-${users}-DEVICE`);
      await useDevice(deleted, remaining);
      await server.restart(); // writes buffered addresses to the database
      const tables = new Set([
        ...(await tablesThatName(deleted.deviceId)),
        ...(await tablesThatName(`DRY-${users}-DEVICE`)),
      ]);
      for (const table of await deviceTables()) {
        assert.ok(
          tables.has(table),
          `${table} has a column device_id: this test must create a row in it, or list it as exempt`,
        );
      }
      return { remaining, deleted, dehydratedId: `DRY-${users}-DEVICE` };
    }

    for (const [how, remove] of [
      ['logout', (deleted) => call(deleted, 'POST', '/logout', {})],
      [
        'deletion of the device',
        (deleted, remaining) => withPassword(remaining, 'DELETE', `/devices/${deleted.deviceId}`, {}),
      ],
      [
        'deletion of several devices',
        (deleted, remaining) =>
          withPassword(remaining, 'POST', '/delete_devices', { devices: [deleted.deviceId, 'OTHER'] }),
      ],
      [
        'a password change with logout_devices',
        (_deleted, remaining) =>
          withPassword(remaining, 'POST', '/account/password', { new_password: 'x', logout_devices: true }),
      ],
    ] as readonly [string, (deleted: TestUser, remaining: TestUser) => Promise<unknown>][]) {
      it(`the database names a deleted device only in the tables that may name it, after ${how}`, async () => {
        const { remaining, deleted } = await userWithDevices();
        await remove(deleted, remaining);
        await waitUntilDeleted(deleted.deviceId);
        assert.equal(
          (await server.api('GET', `${clientApi}/account/whoami`, { token: deleted.token })).status,
          401,
        );
        await call(remaining, 'GET', '/account/whoami');
      });
    }

    for (const [how, remove] of [
      ['POST /logout/all', (deleted) => call(deleted, 'POST', '/logout/all', {})],
      ['deactivation of the account', (deleted) => withPassword(deleted, 'POST', '/account/deactivate', {})],
    ] as readonly [string, (deleted: TestUser) => Promise<unknown>][]) {
      it(`the database names devices of a user only in the tables that may name them, after ${how}`, async () => {
        const { remaining, deleted, dehydratedId } = await userWithDevices();
        await remove(deleted);
        for (const deviceId of [deleted.deviceId, remaining.deviceId, dehydratedId])
          await waitUntilDeleted(deviceId);
        const addresses = (await contents.rows('user_ips')).filter(
          ({ user_id }) => user_id === deleted.userId,
        );
        assert.equal(addresses.length > 0, how === 'POST /logout/all');
      });
    }

    it('the database names a deleted dehydrated device only in the tables that may name it', async () => {
      const { remaining, dehydratedId } = await userWithDevices();
      await call(remaining, 'DELETE', dehydrated);
      await waitUntilDeleted(dehydratedId);
    });

    it('the database names a device that was unused for 60 hours only in the tables that may name it, when the maximum is 36 hours [option: delete_stale_devices_after]', async () => {
      const { remaining, deleted } = await userWithDevices();
      elapsed += 30 * hour;
      await call(remaining, 'GET', '/account/whoami');
      elapsed += 30 * hour;
      await server.restart();
      await eventually(
        'the stale device to be deleted',
        async () => !(await tablesThatName(deleted.deviceId)).includes('devices'),
      );
      await waitUntilDeleted(deleted.deviceId);
      await call(remaining, 'GET', '/account/whoami');
    });
  });
}
