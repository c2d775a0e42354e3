import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { ApplicationService } from '../../../test/support/other-servers/application-service.ts';
import { startTestServer, type TestServer, type TestUser } from '../../../test/support/servers/server.ts';

const unrecognized = { status: 404, body: { errcode: 'M_UNRECOGNIZED', error: 'Unrecognized request' } };

for (const database of selectedDatabases(import.meta.url)) {
  describe(`requests to application services (${database})`, () => {
    let irc: ApplicationService;
    let old: ApplicationService;
    let silent: ApplicationService;
    let server: TestServer;
    let anna: TestUser;
    before(async () => {
      irc = await ApplicationService.start('irc', { protocols: ['irc'] });
      old = await ApplicationService.start('old', { protocols: ['irc', 'icq'] });
      silent = await ApplicationService.start('silent', { url: null });
      server = await startTestServer({
        database,
        config: {
          appservices: {
            app_service_config_files: [irc.file, old.file, silent.file],
            use_appservice_legacy_authorization: true,
          },
        },
      });
      anna = await server.register('anna');
    });
    after(async () => {
      await server?.stop();
      for (const service of [irc, old, silent]) await service.stop();
    });

    const v3 = '/_matrix/client/v3';
    const call = async (
      method: string,
      path: string,
      request: { token: string; body?: unknown; query?: Record<string, string> },
    ) => {
      const { status, body, raw } = await server.api(method, path, request);
      return status === 200 ? (JSON.parse(raw) as Record<string, unknown>) : [status, body['errcode']];
    };
    const register = (service: ApplicationService, username: string) =>
      server.api('POST', `${v3}/register`, {
        token: service.token,
        body: { type: 'm.login.application_service', username, inhibit_login: true },
      });
    const pathsOf = (service: ApplicationService) => service.requests.map(({ path }) => path);

    it('queries the service for an alias that does not exist, and returns the room that the service creates', async () => {
      const alias = '#irc_tea:test';
      let roomId = '';
      irc.respond = async ({ path }) => {
        if (!path.endsWith(encodeURIComponent(alias)))
          return { status: 404, body: { errcode: 'M_NOT_FOUND' } };
        const body = { room_alias_name: 'irc_tea', preset: 'public_chat' };
        roomId = String(
          (await server.api('POST', `${v3}/createRoom`, { token: irc.token, body })).body['room_id'],
        );
        return { status: 200, body: {} };
      };
      const directoryAnswer = await call('GET', `${v3}/directory/room/${encodeURIComponent(alias)}`, anna);
      assert.equal((directoryAnswer as Record<string, unknown>)['room_id'], roomId);
      const joined = await call('POST', `${v3}/join/${encodeURIComponent(alias)}`, { ...anna, body: {} });
      assert.deepEqual(joined, { room_id: roomId });
      assert.ok(pathsOf(irc).includes(`/_matrix/app/v1/rooms/${encodeURIComponent(alias)}`));
      const missingAlias = await call(
        'GET',
        `${v3}/directory/room/${encodeURIComponent('#irc_none:test')}`,
        anna,
      );
      assert.deepEqual(missingAlias, [404, 'M_NOT_FOUND']);
      irc.respond = () => undefined;
    });

    it('queries the service for a user who does not exist, when a profile is requested and after an invite', async () => {
      irc.respond = async ({ method, path }) => {
        const name = /^\/_matrix\/app\/v1\/users\/%40(irc_(?:pia|quin))%3Atest$/.exec(path)?.[1];
        if (name === undefined)
          return method === 'PUT' ? undefined : { status: 404, body: { errcode: 'M_NOT_FOUND' } };
        await register(irc, name);
        return { status: 200, body: {} };
      };
      assert.deepEqual(await call('GET', `${v3}/profile/@irc_pia:test`, anna), { displayname: 'irc_pia' });
      assert.deepEqual(await call('GET', `${v3}/profile/@irc_nobody:test`, anna), [404, 'M_NOT_FOUND']);
      const body = { invite: ['@irc_quin:test'] };
      assert.equal((await server.api('POST', `${v3}/createRoom`, { ...anna, body })).status, 200);
      await irc.until(() => pathsOf(irc).includes('/_matrix/app/v1/users/%40irc_quin%3Atest'));
      irc.respond = () => undefined;
    });

    it('[option: use_appservice_legacy_authorization] sends the hs_token in the query as well', () => {
      const tokens = irc.requests.map(({ query }) => query.get('access_token'));
      assert.deepEqual([...new Set(tokens)], [irc.hsToken]);
      assert.deepEqual(
        [...new Set(irc.requests.map(({ authorization }) => authorization))],
        [`Bearer ${irc.hsToken}`],
      );
    });

    it('does not record the IP address of a request that a service sends as its user, unless track_appservice_user_ips is set', async () => {
      const asPia = { token: irc.token, query: { user_id: '@irc_pia:test' } };
      await call('GET', `${v3}/devices`, asPia);
      await call('GET', `${v3}/devices`, asPia);
      const whois = await call('GET', `${v3}/admin/whois/@irc_pia:test`, asPia);
      assert.doesNotMatch(JSON.stringify(whois), /127\.0\.0\.1/);
    });

    it('learns whether a service serves /_matrix, /_proto or paths without a prefix, and stores it', async () => {
      old.respond = ({ path }) => (path.startsWith('/_proto/') ? undefined : unrecognized);
      const ping = () =>
        call('POST', '/_matrix/client/v1/appservice/old/ping', { token: old.token, body: {} });
      assert.equal(typeof ((await ping()) as Record<string, unknown>)['duration_ms'], 'number');
      assert.deepEqual(pathsOf(old), ['/_matrix/app/v1/ping', '/_proto/app/v1/ping']);
      await ping();
      assert.deepEqual(pathsOf(old).slice(2), ['/_proto/app/v1/ping']);
      await server.restart();
      await ping();
      assert.deepEqual(pathsOf(old).slice(3), ['/_proto/app/v1/ping']);
      old.respond = ({ path }) => (path.startsWith('/_') ? { status: 404, body: 'Cannot GET' } : undefined);
      await ping();
      assert.deepEqual(pathsOf(old).slice(4), ['/_proto/app/v1/ping', '/_matrix/app/v1/ping', '/ping']);
      old.respond = () => undefined;
    });

    it('POST /appservice/{appserviceId}/ping passes the transaction id to the service and reports failures', async () => {
      const ping = (service: ApplicationService, token = service.token, body: object = {}) =>
        call('POST', `/_matrix/client/v1/appservice/${service.id}/ping`, { token, body });
      await ping(irc, irc.token, { transaction_id: 'mine' });
      assert.deepEqual(irc.requests.at(-1)?.body, { transaction_id: 'mine' });
      assert.deepEqual(await ping(irc, old.token), [403, 'M_FORBIDDEN']);
      assert.deepEqual(await ping(irc, anna.token), [403, 'M_FORBIDDEN']);
      assert.deepEqual(await ping(silent), [400, 'M_URL_NOT_SET']);
      irc.respond = () => ({ status: 403, body: { errcode: 'M_FORBIDDEN' } });
      const path = '/_matrix/client/v1/appservice/irc/ping';
      const { status, body } = await server.api('POST', path, { token: irc.token, body: {} });
      assert.deepEqual(
        [status, body['errcode'], body['status'], body['body']],
        [502, 'M_BAD_STATUS', 403, '{"errcode":"M_FORBIDDEN"}'],
      );
      irc.respond = () => undefined;
    });

    it('GET /thirdparty/… describes protocols with the instances of all services, and searches users and locations', async () => {
      const instance = { desc: 'Libera', network_id: 'libera', fields: {} };
      const protocol = {
        user_fields: ['nick'],
        location_fields: ['channel'],
        icon: 'mxc://a/b',
        field_types: {},
      };
      const user = { userid: '@irc_ann:test', protocol: 'irc', fields: { nick: 'ann' } };
      const location = { alias: '#irc_tea:test', protocol: 'irc', fields: { channel: '#tea' } };
      const answers: Readonly<Record<string, unknown>> = {
        '/thirdparty/protocol/irc': { ...protocol, instances: [instance] },
        '/thirdparty/user/irc': [user, { userid: 'incomplete' }],
        '/thirdparty/location/irc': [location],
        '/thirdparty/user': [user],
        '/thirdparty/location': [location],
      };
      irc.respond = ({ path }) => ({ status: 200, body: answers[path.replace('/_matrix/app/v1', '')] ?? {} });
      old.respond = ({ path }) =>
        path.endsWith('/protocol/irc')
          ? { status: 200, body: { ...protocol, instances: [{ ...instance, network_id: 'oftc' }] } }
          : { status: 500, body: {} };
      const described = {
        ...protocol,
        instances: [
          { ...instance, instance_id: 'irc|libera' },
          { ...instance, network_id: 'oftc', instance_id: 'old|oftc' },
        ],
      };
      assert.deepEqual(await call('GET', `${v3}/thirdparty/protocols`, anna), { irc: described });
      assert.deepEqual(await call('GET', `${v3}/thirdparty/protocol/irc`, anna), described);
      assert.deepEqual(await call('GET', `${v3}/thirdparty/protocol/other`, anna), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await call('GET', `${v3}/thirdparty/user/irc`, { ...anna, query: { nick: 'ann' } }), [
        user,
      ]);
      const lastRequest = irc.requests.at(-1)!;
      assert.deepEqual(
        [lastRequest.path, lastRequest.query.get('nick')],
        ['/_matrix/app/v1/thirdparty/user/irc', 'ann'],
      );
      assert.deepEqual(await call('GET', `${v3}/thirdparty/location/irc`, anna), [location]);
      const userid = { ...anna, query: { userid: '@irc_ann:test' } };
      assert.deepEqual(await call('GET', `${v3}/thirdparty/user`, userid), [user]);
      const alias = { ...anna, query: { alias: '#irc_tea:test' } };
      assert.deepEqual(await call('GET', `${v3}/thirdparty/location`, alias), [location]);
      const requestsBefore = irc.requests.length;
      const searches = await Promise.all(
        Array.from({ length: 100 }, () => call('GET', `${v3}/thirdparty/location`, alias)),
      );
      assert.ok(searches.some((answer) => JSON.stringify(answer) === '[429,"M_LIMIT_EXCEEDED"]'));
      assert.ok(irc.requests.length - requestsBefore < 100, 'limited searches do not reach the service');
    });

    it('lists the rooms of a network under the id of its instance', async () => {
      irc.respond = () => undefined;
      const body = { name: 'Tea', preset: 'public_chat' };
      const created = await server.api('POST', `${v3}/createRoom`, { token: irc.token, body });
      const roomId = String(created.body['room_id']);
      const list = async (filter: object) => {
        const { chunk } = (await call('POST', `${v3}/publicRooms`, { ...anna, body: filter })) as {
          chunk: { room_id: string }[];
        };
        return chunk.map(({ room_id }) => room_id);
      };
      const path = `${v3}/directory/list/appservice/libera/${roomId}`;
      assert.deepEqual(await call('PUT', path, { ...anna, body: { visibility: 'public' } }), [
        403,
        'M_FORBIDDEN',
      ]);
      assert.deepEqual(await call('PUT', path, { token: irc.token, body: { visibility: 'public' } }), {});
      assert.deepEqual(await list({ third_party_instance_id: 'irc|libera' }), [roomId]);
      assert.deepEqual(await list({ include_all_networks: true }), [roomId]);
      assert.deepEqual(await list({}), []);
    });
  });
}
