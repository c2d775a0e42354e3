import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { ApplicationService } from '../../../test/support/other-servers/application-service.ts';
import { type ApiRequest, startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { registerAdmin } from '../../../test/support/users/register-admin.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`application services as clients (${database})`, () => {
    let irc: ApplicationService;
    let limited: ApplicationService;
    let server: TestServer;
    before(async () => {
      irc = await ApplicationService.start('irc', { protocols: ['irc'] });
      limited = await ApplicationService.start('limited', {
        rate_limited: true,
        'io.element.msc4190': true,
        namespaces: { users: [{ regex: '@(limited_.*|anna:)', exclusive: false }] },
      });
      server = await startTestServer({
        database,
        config: {
          appservices: {
            app_service_config_files: [irc.file, limited.file],
            track_appservice_user_ips: true,
          },
          rateLimits: {
            rc_message: { per_second: 0.001, burst_count: 3 },
            rc_login: { address: { per_second: 0.001, burst_count: 1 } },
          },
          rooms: { auto_join_rooms: ['#lobby:test'] },
        },
      });
    });
    after(async () => {
      await server?.stop();
      await irc.stop();
      await limited.stop();
    });

    const v3 = '/_matrix/client/v3';
    const as = (service: ApplicationService, userId?: string, deviceId?: string): ApiRequest => ({
      token: service.token,
      query: { ...(userId && { user_id: userId }), ...(deviceId && { device_id: deviceId }) },
    });
    const call = async (method: string, path: string, request: ApiRequest) => {
      const { status, body } = await server.api(method, `${v3}${path}`, request);
      return status === 200 || status === 201 ? body : [status, body['errcode']];
    };
    const register = (service: ApplicationService, username: string, more: object = {}) =>
      call('POST', '/register', {
        token: service.token,
        body: { type: 'm.login.application_service', username, inhibit_login: true, ...more },
      });

    it('[option: app_service_config_files] lets a service act as its sender by default; the account of the sender exists from the start', async () => {
      assert.deepEqual(await call('GET', '/account/whoami', as(irc)), {
        user_id: '@ircbot:test',
        is_guest: false,
      });
      assert.deepEqual(
        await call('PUT', '/profile/@ircbot:test/displayname', { ...as(irc), body: { displayname: 'IRC' } }),
        {},
      );
    });

    it('lets a service register users in its namespaces, who join no auto_join_rooms, and rejects other users with 400 M_EXCLUSIVE', async () => {
      const made = await register(irc, 'irc_anna');
      assert.deepEqual(made, { user_id: '@irc_anna:test', home_server: 'test' });
      assert.deepEqual(await register(irc, 'irc_anna'), [400, 'M_USER_IN_USE']);
      assert.deepEqual(await register(irc, 'ben'), [400, 'M_EXCLUSIVE']);
      assert.deepEqual(await call('GET', '/joined_rooms', as(irc, '@irc_anna:test')), { joined_rooms: [] });
      const withDevice = (await register(irc, 'irc_dora', {
        inhibit_login: false,
        device_id: 'PHONE',
      })) as Record<string, unknown>;
      assert.equal(withDevice['device_id'], 'PHONE');
      assert.equal(typeof withDevice['access_token'], 'string');
    });

    it('registers and logs in a user of a service even when the query parameter user_id names the user, as in requests of matrix-bot-sdk', async () => {
      const type = 'm.login.application_service';
      const asUser = as(irc, '@irc_olga:test', 'NONE');
      const body = { type, username: 'irc_olga', inhibit_login: true };
      assert.deepEqual(await call('POST', '/register', { ...asUser, body }), {
        user_id: '@irc_olga:test',
        home_server: 'test',
      });
      const login = { type, identifier: { type: 'm.id.user', user: 'irc_olga' } };
      const session = (await call('POST', '/login', { ...asUser, body: login })) as Record<string, unknown>;
      assert.equal(session['user_id'], '@irc_olga:test');
    });

    it('rejects registrations with m.login.application_service or in exclusive namespaces by clients other than the service', async () => {
      const body = { type: 'm.login.application_service', username: 'irc_eva' };
      assert.deepEqual(await call('POST', '/register', { body }), [401, 'M_MISSING_TOKEN']);
      const { token } = await server.register('clara');
      assert.deepEqual(await call('POST', '/register', { body, token }), [401, 'M_UNKNOWN_TOKEN']);
      const plain = { username: 'irc_eva', password: 'correct horse', auth: { type: 'm.login.dummy' } };
      assert.deepEqual(await call('POST', '/register', { body: plain }), [400, 'M_EXCLUSIVE']);
      assert.deepEqual(await call('GET', '/register/available', { query: { username: 'ircbot' } }), [
        400,
        'M_EXCLUSIVE',
      ]);
      assert.deepEqual(await register(limited, 'irc_eva'), [400, 'M_EXCLUSIVE']);
    });

    it('lets a service act as users in its namespaces who have an account, with the token in the header or the query', async () => {
      await register(irc, 'irc_fred');
      const { user_id } = (await call('GET', '/account/whoami', as(irc, '@irc_fred:test'))) as {
        user_id: string;
      };
      assert.equal(user_id, '@irc_fred:test');
      const query = { access_token: irc.token, user_id: '@irc_fred:test' };
      assert.equal(
        ((await call('GET', '/account/whoami', { query })) as { user_id: string }).user_id,
        '@irc_fred:test',
      );
      assert.deepEqual(await call('GET', '/account/whoami', as(irc, '@irc_unknown:test')), [
        403,
        'M_FORBIDDEN',
      ]);
      await server.register('anna');
      assert.deepEqual(await call('GET', '/account/whoami', as(irc, '@anna:test')), [403, 'M_FORBIDDEN']);
      assert.deepEqual(await call('GET', '/account/whoami', as(irc, '@irc_fred:elsewhere')), [
        403,
        'M_FORBIDDEN',
      ]);
      const puppet = (await call('GET', '/account/whoami', as(limited, '@anna:test'))) as { user_id: string };
      assert.equal(puppet.user_id, '@anna:test', 'a user in a namespace that is not exclusive');
    });

    it('lets a service act as devices of its users, and create and delete them without user-interactive authentication', async () => {
      await register(irc, 'irc_gina');
      const gina = '@irc_gina:test';
      const device = as(irc, gina, 'BRIDGE');
      assert.deepEqual(await call('GET', '/account/whoami', device), [400, 'M_UNKNOWN_DEVICE']);
      const created = await server.api('PUT', `${v3}/devices/BRIDGE`, { ...as(irc, gina), body: {} });
      assert.equal(created.status, 201);
      const acting = { is_guest: false, user_id: gina, device_id: 'BRIDGE' };
      assert.deepEqual(await call('GET', '/account/whoami', device), acting);
      const unstable = { ...as(irc), query: { user_id: gina, 'org.matrix.msc3202.device_id': 'BRIDGE' } };
      assert.deepEqual(await call('GET', '/account/whoami', unstable), acting);
      assert.deepEqual(await call('DELETE', '/devices/BRIDGE', { ...as(irc, gina), body: {} }), {});
      assert.deepEqual(await call('GET', '/account/whoami', device), [400, 'M_UNKNOWN_DEVICE']);
    });

    it('lets a service deactivate its users without user-interactive authentication, but requires it in the sessions of these users', async () => {
      await register(irc, 'irc_zoe');
      const zoe = '@irc_zoe:test';
      const identifier = { type: 'm.id.user', user: 'irc_zoe' };
      const login = { type: 'm.login.application_service', identifier };
      const session = await server.api('POST', `${v3}/login`, { token: irc.token, body: login });
      const token = String(session.body['access_token']);
      const unconfirmed = await server.api('POST', `${v3}/account/deactivate`, { token, body: {} });
      assert.equal(unconfirmed.status, 401, 'the user has to confirm a deactivation in a session');
      assert.deepEqual(
        await call('POST', '/account/deactivate', { ...as(irc, zoe), body: { erase: true } }),
        {
          id_server_unbind_result: 'success',
        },
      );
      assert.deepEqual(await call('GET', '/account/whoami', { token }), [401, 'M_UNKNOWN_TOKEN']);
      const sender = await call('POST', '/account/deactivate', { ...as(irc), body: {} });
      assert.deepEqual(sender, [403, 'M_FORBIDDEN'], 'without its sender the service could not act');
      const later = await call('GET', '/account/whoami', as(irc, zoe));
      assert.deepEqual(later, [403, 'M_FORBIDDEN']);
    });

    it('logs in users of a service with m.login.application_service, without the rate limit by address', async () => {
      await register(irc, 'irc_hugo');
      const flows = (await call('GET', '/login', {})) as { flows: { type: string }[] };
      assert.ok(flows.flows.some(({ type }) => type === 'm.login.application_service'));
      const login = (user: string, token?: string) =>
        call('POST', '/login', {
          ...(token && { token }),
          body: { type: 'm.login.application_service', identifier: { type: 'm.id.user', user } },
        });
      for (const user of ['irc_hugo', '@irc_hugo:test', 'irc_hugo']) {
        const session = (await login(user, irc.token)) as Record<string, string>;
        assert.equal(session['user_id'], '@irc_hugo:test');
        const whoami = await call('GET', '/account/whoami', { token: session['access_token']! });
        assert.equal((whoami as Record<string, unknown>)['device_id'], session['device_id']);
      }
      assert.deepEqual(await login('anna', irc.token), [400, 'M_EXCLUSIVE']);
      assert.deepEqual(await login('irc_nobody', irc.token), [403, 'M_FORBIDDEN']);
      assert.deepEqual(await login('irc_hugo'), [401, 'M_MISSING_TOKEN']);
      const { access_token: token } = (await login('irc_hugo', irc.token)) as Record<string, string>;
      assert.deepEqual(await login('irc_hugo', token), [401, 'M_UNKNOWN_TOKEN'], 'the token of a user');
      assert.deepEqual(await login('limited_x', limited.token), [400, 'M_APPSERVICE_LOGIN_UNSUPPORTED']);
    });

    it('rejects logins of locked users of a service, and requests in their name, with 401 M_USER_LOCKED and soft_logout', async () => {
      await register(irc, 'irc_lou');
      const admin = await registerAdmin(server);
      const path = `/_synapse/admin/v2/users/${encodeURIComponent('@irc_lou:test')}`;
      const locking = await server.api('PUT', path, { token: admin.token, body: { locked: true } });
      assert.equal(locking.status, 200, locking.raw);
      const identifier = { type: 'm.id.user', user: 'irc_lou' };
      const login = { type: 'm.login.application_service', identifier };
      for (const answer of [
        await server.api('POST', `${v3}/login`, { token: irc.token, body: login }),
        await server.api('GET', `${v3}/account/whoami`, as(irc, '@irc_lou:test')),
      ]) {
        const { errcode, soft_logout } = answer.body;
        assert.deepEqual([answer.status, errcode, soft_logout], [401, 'M_USER_LOCKED', true]);
      }
    });

    it('requires inhibit_login in registrations by services that create devices themselves (MSC4190)', async () => {
      assert.deepEqual(await register(limited, 'limited_ida', { inhibit_login: false }), [
        400,
        'M_APPSERVICE_LOGIN_UNSUPPORTED',
      ]);
      assert.deepEqual(await register(limited, 'limited_ida'), {
        user_id: '@limited_ida:test',
        home_server: 'test',
      });
    });

    it('rate-limits the users of a service with rate_limited: true, and never its sender', async () => {
      await register(limited, 'limited_jo');
      await register(irc, 'irc_jo');
      const statuses = async (request: ApiRequest) => {
        const room = (await call('POST', '/createRoom', { ...request, body: {} })) as { room_id: string };
        const found = new Set<number>();
        for (let count = 0; count < 5; count++) {
          const path = `${v3}/rooms/${room.room_id}/send/m.room.message/${count}`;
          found.add(
            (await server.api('PUT', path, { ...request, body: { body: 'x', msgtype: 'm.text' } })).status,
          );
        }
        return [...found];
      };
      assert.deepEqual(await statuses(as(limited, '@limited_jo:test')), [200, 429]);
      assert.deepEqual(await statuses(as(limited)), [200]);
      assert.deepEqual(await statuses(as(irc, '@irc_jo:test')), [200]);
    });

    it('sets the time of messages and state events of a service to its query parameter ts', async () => {
      await register(irc, 'irc_kim');
      const kim = as(irc, '@irc_kim:test');
      const { room_id: room } = (await call('POST', '/createRoom', { ...kim, body: {} })) as {
        room_id: string;
      };
      const message = (await call('PUT', `/rooms/${room}/send/m.room.message/1`, {
        ...kim,
        query: { ...kim.query, ts: 1_000 },
        body: { body: 'x', msgtype: 'm.text' },
      })) as { event_id: string };
      const topic = (await call('PUT', `/rooms/${room}/state/m.room.topic/`, {
        ...kim,
        query: { ...kim.query, ts: 2_000 },
        body: { topic: 'x' },
      })) as { event_id: string };
      for (const [{ event_id }, time] of [
        [message, 1_000],
        [topic, 2_000],
      ] as const) {
        const event = (await call('GET', `/rooms/${room}/event/${event_id}`, kim)) as Record<string, unknown>;
        assert.equal(event['origin_server_ts'], time);
      }
    });

    it('[option: track_appservice_user_ips] records the address of requests in which a service acts as its user', async () => {
      await register(irc, 'irc_nina');
      await call('GET', '/devices', as(irc, '@irc_nina:test'));
      await call('GET', '/devices', as(irc, '@irc_nina:test'));
      const whois = await call('GET', '/admin/whois/@irc_nina:test', as(irc, '@irc_nina:test'));
      assert.match(JSON.stringify(whois), /"ip":"127\.0\.0\.1"/);
    });

    it('rejects with 400 M_EXCLUSIVE when other clients create or delete aliases in the namespaces of a service, and when a service creates other aliases', async () => {
      await register(irc, 'irc_lea');
      const lea = as(irc, '@irc_lea:test');
      const { token } = await server.register('mia');
      const { room_id } = (await call('POST', '/createRoom', { ...lea, body: {} })) as { room_id: string };
      const { room_id: other } = (await call('POST', '/createRoom', { token, body: {} })) as {
        room_id: string;
      };
      const alias = `/directory/room/${encodeURIComponent('#irc_lea:test')}`;
      assert.deepEqual(await call('PUT', alias, { token, body: { room_id: other } }), [400, 'M_EXCLUSIVE']);
      assert.deepEqual(await call('POST', '/createRoom', { token, body: { room_alias_name: 'irc_x' } }), [
        400,
        'M_EXCLUSIVE',
      ]);
      assert.deepEqual(await call('PUT', alias, { ...lea, body: { room_id } }), {});
      assert.deepEqual(await call('DELETE', alias, { token }), [400, 'M_EXCLUSIVE']);
      assert.deepEqual(await call('DELETE', alias, as(irc)), {});
      const outside = `/directory/room/${encodeURIComponent('#lea:test')}`;
      assert.deepEqual(await call('PUT', outside, { ...lea, body: { room_id } }), [400, 'M_EXCLUSIVE']);
      const errorOf = async (path: string, body: object) =>
        (await server.api('PUT', `/_matrix/client/v3${path}`, { token: irc.token, body })).body['error'];
      assert.equal(
        await errorOf(outside, { room_id }),
        "The application service 'irc' may not use #lea:test",
      );
    });
  });
}
