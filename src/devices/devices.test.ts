import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import {
  AccountsServer,
  type AccountsServerOptions,
  minute,
  passwordLogin,
} from '../../test/support/servers/accounts-server.ts';
import { Jobs, jobMigrations } from '../kernel/jobs/index.ts';
import { silentLogger } from '../kernel/observability/index.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let server: AccountsServer;
  afterEach(() => server.stop());
  const start = async (setup: AccountsServerOptions = {}) => {
    server = await AccountsServer.start(open, setup);
  };
  const whoami = (token: string) => server.call('GET', '/account/whoami', { token });

  describe('devices of a user', () => {
    it('lets users rename their own devices, and rejects invalid names', async () => {
      await start();
      const { token } = await server.register('alice', {
        device_id: 'A',
        initial_device_display_name: 'Phone',
      });
      assert.deepEqual((await server.call('GET', '/devices/A', { token })).body, {
        device_id: 'A',
        display_name: 'Phone',
        last_seen_ip: '127.0.0.1',
        last_seen_ts: server.clock.now(),
      });
      await server.call('PUT', '/devices/A', { token, body: { display_name: 'Old phone' } });
      assert.equal((await server.call('GET', '/devices/A', { token })).body['display_name'], 'Old phone');
      for (const [path, body, errcode] of [
        ['/devices/B', {}, 'M_NOT_FOUND'],
        ['/devices/B', { display_name: 'x' }, 'M_NOT_FOUND'],
        ['/devices/A', { display_name: 'x'.repeat(101) }, 'M_TOO_LARGE'],
        ['/devices/A', { display_name: 'a\0' }, 'M_INVALID_PARAM'],
        ['/devices/A', { display_name: 1 }, 'M_BAD_JSON'],
      ] as const) {
        assert.equal((await server.call('PUT', path, { token, body })).body['errcode'], errcode);
      }
      const bob = await server.register('bob');
      assert.equal((await server.call('GET', '/devices/A', { token: bob.token })).status, 404);
    });

    it('returns null for the unknown name, address and time of a device', async () => {
      await start();
      const { token } = await server.register('alice', { device_id: 'A' });
      await server.login('alice', { device_id: 'B' });
      const unknown = { device_id: 'B', display_name: null, last_seen_ip: null, last_seen_ts: null };
      assert.deepEqual((await server.call('GET', '/devices/B', { token })).body, unknown);
      const { body } = await server.call('GET', '/devices', { token });
      assert.deepEqual(
        (body['devices'] as { device_id: string }[]).find(({ device_id }) => device_id === 'B'),
        unknown,
      );
    });

    it('writes last_seen_ts of a device once for all requests of a minute, and returns it', async () => {
      await start();
      const { token } = await server.register('alice', { device_id: 'A' });
      await whoami(token);
      const batchesBefore = server.database.statistics.batches;
      for (let i = 0; i < 10; i++) await whoami(token);
      assert.equal(server.database.statistics.batches, batchesBefore);
      server.clock.advance(minute);
      await server.slice.lastSeen.flush();
      assert.equal(server.database.statistics.batches, batchesBefore + 1);
      const { body } = await server.call('GET', '/devices/A', { token });
      const last_seen_ts = server.clock.now();
      assert.deepEqual(body, { device_id: 'A', display_name: null, last_seen_ip: '127.0.0.1', last_seen_ts });
    });

    it('GET /admin/whois returns the addresses of devices to their user and to administrators', async () => {
      await start();
      const alice = await server.register('alice', { device_id: 'A' });
      const bob = await server.register('bob');
      const headers = { 'x-forwarded-for': '192.0.2.7', 'user-agent': 'Teapot/1' };
      await server.call('GET', '/account/whoami', { token: alice.token, headers });
      const whois = (token: string) => server.call('GET', '/admin/whois/@alice:test', { token, headers });
      const connection = { ip: '192.0.2.7', last_seen: server.clock.now(), user_agent: 'Teapot/1' };
      const expected = {
        user_id: '@alice:test',
        devices: { A: { sessions: [{ connections: [connection] }] } },
      };
      assert.equal((await whois(bob.token)).body['errcode'], 'M_FORBIDDEN');
      assert.deepEqual((await whois((await server.registerAdmin()).token)).body, expected);
      assert.deepEqual((await whois(alice.token)).body, expected);
    });

    it('deletes devices and their sessions after the user has confirmed the deletion', async () => {
      await start();
      const phone = await server.register('alice', { device_id: 'PHONE' });
      const old = [
        await server.login('alice', { device_id: 'A' }),
        await server.login('alice', { device_id: 'B' }),
      ];
      for (const { token } of old) assert.equal((await whoami(token)).status, 200);
      assert.equal((await server.callWithPassword(phone, 'DELETE', '/devices/A')).status, 200);
      assert.equal((await whoami(old[0]!.token)).status, 401);
      assert.equal(
        (await server.callWithPassword(phone, 'POST', '/delete_devices', { devices: ['A', 'B'] })).status,
        200,
      );
      assert.equal((await whoami(old[1]!.token)).status, 401);
      const { body } = await server.call('GET', '/devices', { token: phone.token });
      assert.deepEqual((body['devices'] as unknown[]).length, 1);
    });

    it('deletes a device once for each confirmation, and answers a repeated request like the first one', async () => {
      await start();
      const { token } = await server.register('alice', { device_id: 'PHONE' });
      await server.login('alice', { device_id: 'A' });
      const challenge = await server.call('DELETE', '/devices/A', { token });
      const auth = { ...passwordLogin('alice'), session: challenge.body['session'] };
      const remove = () => server.call('DELETE', '/devices/A', { token, body: { auth } });
      assert.deepEqual([(await remove()).status, (await remove()).status], [200, 200]);
      const newSession = await server.login('alice', { device_id: 'A' });
      assert.deepEqual((await remove()).body, {});
      assert.equal((await whoami(newSession.token)).status, 200, 'a new device with the same id stays');
    });

    it('responds to the deletion of a device of another user with the same challenge as for an unknown device, and only after the confirmation with 403 M_FORBIDDEN', async () => {
      await start();
      const alice = await server.register('alice', { device_id: 'PHONE' });
      const bob = await server.register('bob', { device_id: 'LAPTOP' });
      for (const [deviceId, expected] of [
        ['LAPTOP', [403, 'M_FORBIDDEN']],
        ['UNKNOWN', [200, undefined]],
      ] as const) {
        for (const [method, path, body] of [
          ['DELETE', `/devices/${deviceId}`, {}],
          ['POST', '/delete_devices', { devices: [deviceId] }],
        ] as const) {
          const challenge = await server.call(method, path, { token: alice.token, body });
          const { session, ...rest } = challenge.body;
          assert.equal(typeof session, 'string');
          assert.deepEqual(
            [challenge.status, rest],
            [401, { flows: [{ stages: ['m.login.password'] }], params: {}, completed: [] }],
          );
          const confirmed = await server.callWithPassword(alice, method, path, body);
          assert.deepEqual([confirmed.status, confirmed.body['errcode']], expected);
        }
      }
      assert.equal((await whoami(bob.token)).status, 200);
    });

    it('deletes a device even when another user has a device with the same id; the device of the other user stays', async () => {
      await start();
      const alice = await server.register('alice', { device_id: 'PHONE' });
      const bob = await server.register('bob', { device_id: 'PHONE' });
      assert.equal((await server.callWithPassword(alice, 'DELETE', '/devices/PHONE')).status, 200);
      assert.deepEqual([(await whoami(alice.token)).status, (await whoami(bob.token)).status], [401, 200]);
    });

    it('answers 403 M_FORBIDDEN to a deletion of a device that is confirmed with the password of another user', async () => {
      await start();
      const alice = await server.register('alice', { device_id: 'PHONE' });
      await server.register('bob');
      const codeOf = ({ status, body }: Awaited<ReturnType<typeof server.call>>) => [status, body['errcode']];
      const challenge = await server.call('DELETE', '/devices/PHONE', { token: alice.token });
      assert.equal(challenge.status, 401);
      const { session } = challenge.body;
      const confirm = (name: string) =>
        server.call('DELETE', '/devices/PHONE', {
          token: alice.token,
          body: { auth: { ...passwordLogin(name), session } },
        });
      assert.deepEqual(codeOf(await confirm('bob')), [403, 'M_FORBIDDEN']);
      assert.equal((await whoami(alice.token)).status, 200);
      assert.equal((await confirm('alice')).status, 200);
    });

    it('answers 403 M_FORBIDDEN to a deletion of a device with a confirmation for another device', async () => {
      await start();
      const { token } = await server.register('alice', { device_id: 'PHONE' });
      const challenge = await server.call('DELETE', '/devices/A', { token });
      const auth = { ...passwordLogin('alice'), session: challenge.body['session'] };
      const other = await server.call('DELETE', '/devices/PHONE', { token, body: { auth } });
      assert.deepEqual([other.status, other.body['errcode']], [403, 'M_FORBIDDEN']);
    });

    it('asks for the password again to delete a device only when the registration or the last confirmation is longer ago than ui_auth.session_timeout, but always to change the password', async () => {
      await start({ options: { ui_auth: { session_timeout: 10 * minute } } });
      const alice = await server.register('alice');
      const remove = () => server.call('DELETE', '/devices/X', { token: alice.token });
      assert.equal((await remove()).status, 200);
      server.clock.advance(11 * minute);
      assert.equal((await remove()).status, 401);
      assert.equal((await server.callWithPassword(alice, 'DELETE', '/devices/X')).status, 200);
      assert.equal((await remove()).status, 200);
      const body = { new_password: 'new' };
      assert.equal(
        (await server.call('POST', '/account/password', { token: alice.token, body })).status,
        401,
      );
    });

    it('publishes added and deleted devices on the stream of device lists', async () => {
      await start();
      const users: string[] = [];
      server.slice.devices.deviceListStream.subscribe(({ userId }) => users.push(userId));
      const positionBefore = server.streams.current;
      const alice = await server.register('alice');
      await server.register('bob');
      await server.call('POST', '/logout', { token: alice.token });
      assert.deepEqual(users, ['@alice:test', '@bob:test', '@alice:test']);
      const { devices } = server.slice;
      assert.deepEqual((await devices.changedSince(positionBefore, server.streams.current)).sort(), [
        '@alice:test',
        '@bob:test',
      ]);
      assert.deepEqual(await devices.changedSince(server.streams.current, server.streams.current + 1), []);
    });

    it('deletes devices that were not used for long, even if the server never runs for a whole day [option: delete_stale_devices_after]', async () => {
      const hour = 60 * minute;
      await start({ options: { delete_stale_devices_after: 36 * hour }, migrations: jobMigrations });
      const { database, clock, slice } = server;
      const old = await server.register('alice');
      const deviceIds = async () => [
        ...((await slice.devices.names([old.userId])).get(old.userId)?.keys() ?? []),
      ];
      const runFor = async (duration: number) => {
        const jobs = new Jobs({ database, clock, log: silentLogger, isOnlyProcess: true });
        server.scheduleHousekeeping(jobs, 36 * hour);
        await jobs.start();
        clock.advance(duration);
        await jobs.settled();
        await jobs.stop();
      };
      for (let run = 0; run < 3; run++) await runFor(10 * hour);
      const recentSession = await server.login('alice');
      assert.deepEqual((await deviceIds()).sort(), [old.deviceId, recentSession.deviceId].sort());
      for (let run = 0; run < 3; run++) await runFor(10 * hour);
      assert.deepEqual(await deviceIds(), [recentSession.deviceId]);
      assert.equal((await whoami(old.token)).status, 401);
      assert.equal((await whoami(recentSession.token)).status, 200);
    });
  });
});
