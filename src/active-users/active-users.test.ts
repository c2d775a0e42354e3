import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../test/clients/eventually.ts';
import { type ManualClock, manualClock } from '../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import {
  type ConfigurationOverrides,
  startTestServer,
  type TestServer,
} from '../../test/support/servers/server.ts';
import { registerAdmin } from '../../test/support/users/register-admin.ts';
import { enc, TestClient } from '../../test/support/users/test-client.ts';
import { limitedOperations } from './limited-routes.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

const listeners = [
  {
    port: 0,
    type: 'http',
    bind_addresses: ['127.0.0.1'],
    resources: [{ names: ['client', 'metrics'] }],
  },
];

const exceeded = {
  errcode: 'M_RESOURCE_LIMIT_EXCEEDED',
  error: 'This homeserver has reached its monthly limit of active users',
  limit_type: 'monthly_active_user',
  admin_contact: 'mailto:admin@example.org',
};

const isLimitNotice = ({ content }: { readonly content: Readonly<Record<string, unknown>> }) =>
  content['server_notice_type'] === 'm.server_notice.usage_limit_reached';

const deactivate = (user: TestClient, name: string) =>
  user.do('POST', '/account/deactivate', {
    auth: {
      type: 'm.login.password',
      identifier: { type: 'm.id.user', user: name },
      password: 'correct horse',
    },
  });

forSelectedDatabases(import.meta.url, ({ kind }) => {
  let server: TestServer;
  let clock: ManualClock;
  const start = async (accounts: ConfigurationOverrides['accounts'], more: ConfigurationOverrides = {}) => {
    clock = manualClock();
    server = await startTestServer({
      database: kind,
      clock,
      config: {
        http: { listeners } as never,
        observability: { enable_metrics: true },
        accounts: { admin_contact: 'mailto:admin@example.org', ...accounts },
        ...more,
      },
    });
  };
  const newUser = (name: string) => TestClient.register(server, name);
  const statusOf = async (user: TestClient, method = 'GET', path = '/sync', body?: object) => {
    const answer = await user.call(method, path, body);
    if (answer.status === 403) assert.deepEqual(answer.body, exceeded);
    return answer.status;
  };
  const register = (body: object) => server.api('POST', '/_matrix/client/v3/register', { body });
  const registration = (username: string) => ({
    username,
    password: 'correct horse',
    auth: { type: 'm.login.dummy' },
  });
  const login = (user: string) =>
    server.api('POST', '/_matrix/client/v3/login', {
      body: {
        type: 'm.login.password',
        identifier: { type: 'm.id.user', user },
        password: 'correct horse',
      },
    });
  const metric = async (name: string, labels = '') => {
    const { raw } = await server.api('GET', '/_synapse/metrics');
    const value = raw.split('\n').find((line) => line.startsWith(`${name}${labels} `));
    return value === undefined ? undefined : Number(value.split(' ').at(-1));
  };

  describe('the limit of monthly active users', () => {
    let alice: TestClient;
    let bob: TestClient;
    let carol: TestClient;
    let root: TestClient;
    let admin: TestClient;
    /** The response to the request that schedules a delayed event. A later test reads how the event ended. */
    let delayed: Record<string, unknown>;
    /** Sends a request of MSC4140, which the specification does not have. */
    const requestOfMsc4140 = async ({ token }: TestClient, method: string, path: string, body?: object) => {
      const response = await fetch(`${server.baseUrl}/_matrix/client/${path}`, {
        method,
        headers: { authorization: `Bearer ${token}` },
        ...(body && { body: JSON.stringify(body) }),
      });
      return (await response.json()) as Record<string, unknown>;
    };
    before(async () => {
      await start(
        {
          limit_usage_by_mau: true,
          max_mau_value: 2,
          mau_limit_reserved_threepids: [{ medium: 'email', address: 'Root@example.org' }],
        },
        {
          serverNotices: { server_notices: { system_mxid_localpart: 'notices', auto_join: true } },
          rooms: { max_event_delay_duration: 50 * day },
          sso: { jwt_config: { enabled: true, secret: 'jwt secret', algorithm: 'HS256' } } as never,
        },
      );
      [alice, bob, carol] = [await newUser('alice'), await newUser('bob'), await newUser('carol')];
      root = await newUser('root');
    });
    after(() => server.stop());

    /** Returns the pinned events of a user's notice room, in full. */
    const pinnedEvents = async (user: TestClient) => {
      const joined = (await user.sync()).rooms?.join ?? {};
      for (const [roomId, { state, timeline }] of Object.entries(joined)) {
        const events = [...(state?.events ?? []), ...timeline.events];
        const pins = events.findLast(({ type }) => type === 'm.room.pinned_events');
        if (pins === undefined) continue;
        const ids = pins.content['pinned'] as string[];
        return Promise.all(ids.map((id) => user.do('GET', `/rooms/${enc(roomId)}/event/${enc(id)}`)));
      }
      return undefined;
    };

    it('lets users who were active in the month continue, and refuses others [option: limit_usage_by_mau, max_mau_value, admin_contact]', async () => {
      const rooms = { alice: await alice.createRoom(), carol: await carol.createRoom() };
      assert.deepEqual([await statusOf(alice), await statusOf(carol)], [200, 200]);
      assert.equal(await statusOf(bob), 403, 'alice and carol were first');
      for (const [method, path, body] of [
        ['POST', '/createRoom', {}],
        ['POST', `/join/${enc(rooms.alice)}`, {}],
        ['PUT', `/rooms/${enc(rooms.alice)}/send/m.room.message/t1`, { msgtype: 'm.text', body: 'hi' }],
        ['PUT', `/rooms/${enc(rooms.alice)}/state/m.room.topic/`, { topic: 'x' }],
      ] as const)
        assert.equal(await statusOf(bob, method, path, body), 403, path);
      assert.equal(await statusOf(bob, 'GET', '/account/whoami'), 200, 'reading is not limited');
      await alice.say(rooms.alice, 'hello');
      assert.deepEqual((await login('bob')).body, exceeded);
      assert.equal((await login('alice')).status, 200);
      const refused = await register(registration('dave'));
      assert.deepEqual([refused.status, refused.body], [403, exceeded]);
      const sliding = '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync';
      assert.equal((await bob.request('POST', sliding, {})).status, 403);
    });

    it('sends the notice about the limit at once to users who were active in the minute in which it was reached', async () => {
      for (const user of [alice, carol]) {
        await eventually('the pinned notice', async () => (await pinnedEvents(user))?.length || undefined);
      }
    });

    it('lets an administrator who was registered with the shared secret use the admin API when the limit is reached, but not sync', async () => {
      admin = await registerAdmin(server);
      assert.equal((await admin.request('GET', '/_synapse/admin/v1/server_version', undefined)).status, 200);
      assert.equal(await statusOf(admin), 403);
    });

    it('refuses to create an account at the first login by JSON web token when the limit is reached', async () => {
      const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
      const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ sub: 'erin' })}`;
      const token = `${signed}.${createHmac('sha256', 'jwt secret').update(signed).digest('base64url')}`;
      const body = { type: 'org.matrix.login.jwt', token };
      const refused = await server.api('POST', '/_matrix/client/v3/login', { body });
      assert.deepEqual([refused.status, refused.body], [403, exceeded]);
      const available = '/_matrix/client/v3/register/available';
      assert.equal((await server.api('GET', available, { query: { username: 'erin' } })).status, 200);
    });

    it('counts the same users after a restart', async () => {
      await server.restart();
      assert.deepEqual([await statusOf(alice), await statusOf(carol), await statusOf(bob)], [200, 200, 403]);
      assert.deepEqual(
        [await metric('server_admin_mau_current'), await metric('server_admin_mau_max')],
        [2, 2],
      );
    });

    it('pins a notice for active users while the limit is reached [option: mau_limit_alerting]', async () => {
      const [notice, ...more] = await eventually('the pinned notice', async () => {
        clock.advance(minute);
        const found = await pinnedEvents(alice);
        return found?.length ? found : undefined;
      });
      const { errcode: _, error, ...details } = exceeded;
      assert.deepEqual(
        [notice?.['type'], notice?.['content'], more],
        [
          'm.room.message',
          {
            msgtype: 'm.server_notice',
            server_notice_type: 'm.server_notice.usage_limit_reached',
            body: error,
            ...details,
          },
          [],
        ],
      );
    });

    it('repeats no notice after a restart, and unpins the notice when the limit has not been reached for an hour', async () => {
      await server.restart();
      clock.advance(minute);
      assert.equal((await pinnedEvents(alice))?.length, 1);
      await deactivate(carol, 'carol');
      clock.advance(minute);
      assert.equal((await pinnedEvents(alice))?.length, 1, 'the limit has just ceased to be reached');
      // The clock advances before one of ten checks only, because a transaction that is idle for 10 seconds fails.
      let checks = 0;
      await eventually('no pinned notice', async () => {
        if (checks++ % 10 === 0) clock.advance(61 * minute);
        return (await pinnedEvents(alice))?.length === 0;
      });
      const joined = Object.values((await alice.sync()).rooms?.join ?? {});
      const notices = joined.flatMap(({ timeline }) => timeline.events.filter(isLimitNotice));
      assert.equal(notices.length, 1);
      assert.equal(await statusOf(bob), 200, 'the place of the deactivated account is free');
      const room = enc(await bob.createRoom());
      const delay = `org.matrix.msc4140.delay=${40 * day}`;
      delayed = await requestOfMsc4140(bob, 'PUT', `v3/rooms/${room}/send/m.room.message/later?${delay}`, {
        msgtype: 'm.text',
        body: 'later',
      });
      assert.equal(typeof delayed['delay_id'], 'string');
    });

    it('admits and counts users with a reserved address when the limit is reached [option: mau_limit_reserved_threepids[].medium, mau_limit_reserved_threepids[].address]', async () => {
      assert.equal(await statusOf(root), 403);
      const answer = await admin.request('PUT', `/_synapse/admin/v2/users/${root.id}`, {
        threepids: [{ medium: 'email', address: 'root@example.org' }],
      });
      assert.equal(answer.status, 200, answer.raw);
      // The users with a reserved address are cached for a minute.
      clock.advance(minute);
      assert.equal(await statusOf(root), 200);
      assert.equal(await metric('server_admin_mau_current'), 3);
      assert.equal(await metric('server_admin_mau_registered_reserved_users'), 1);
    });

    it('removes the least recently active users above the limit within an hour, but no users with a reserved address', async () => {
      clock.advance(hour + minute);
      await eventually(
        'two users',
        async () => (await metric('server_admin_mau_current')) === 2 || undefined,
      );
      assert.equal(await statusOf(root), 200);
    });

    it('admits other users when the counted users were not active for 30 days', async () => {
      clock.advance(31 * day);
      await eventually(
        'the reserved user only',
        async () => (await metric('server_admin_mau_current')) === 1 || undefined,
      );
      assert.equal(await statusOf(alice), 200);
      assert.equal(await statusOf(bob), 403, 'the places are taken again');
    });

    it('does not send a delayed event of a user whom the limit refuses meanwhile', async () => {
      clock.advance(10 * day);
      const path = `unstable/org.matrix.msc4140/delayed_events/${delayed['delay_id']}`;
      const { error } = await eventually('the end of the delayed event', async () => {
        const { finalised } = await requestOfMsc4140(bob, 'GET', path);
        return finalised as { error?: { errcode: string } } | undefined;
      });
      assert.equal(error?.errcode, 'M_RESOURCE_LIMIT_EXCEEDED');
    });
  });

  describe('users who are not counted', () => {
    let folder: string;
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'hearth-services-'));
      const service = (id: string) => {
        const file = join(folder, `${id}.yaml`);
        const namespaces = `{users: [{exclusive: true, regex: '@${id}_.*'}]}`;
        const text = `id: ${id}\nurl: null\nas_token: ${id}-token\nhs_token: h${id}\nsender_localpart: ${id}_\nnamespaces: ${namespaces}\n`;
        writeFileSync(file, text);
        return file;
      };
      await start(
        {
          limit_usage_by_mau: true,
          max_mau_value: 1,
          mau_trial_days: 2,
          mau_appservice_trial_days: { irc: 0 },
          mau_limit_alerting: false,
          allow_guest_access: true,
        },
        {
          serverNotices: { server_notices: { system_mxid_localpart: 'notices', auto_join: true } },
          appservices: {
            app_service_config_files: [service('irc'), service('mail')],
            track_appservice_user_ips: true,
          },
        },
      );
    });
    after(async () => {
      await server.stop();
      rmSync(folder, { recursive: true });
    });

    it('counts users after their trial, whose length differs for some application services; refuses guests beyond the limit; sends no notices without alerts [option: mau_trial_days, mau_appservice_trial_days, mau_limit_alerting]', async () => {
      const users = [await newUser('alice'), await newUser('bob')] as const;
      for (const user of users) assert.equal(await statusOf(user), 200);
      for (const id of ['irc', 'mail']) {
        const token = `${id}-token`;
        const created = await server.api('POST', '/_matrix/client/v3/register', {
          token,
          body: { type: 'm.login.application_service', username: `${id}_one`, inhibit_login: true },
        });
        assert.equal(created.status, 200, created.raw);
        const query = { user_id: `@${id}_one:test` };
        assert.equal(
          (await server.api('GET', '/_matrix/client/v3/account/whoami', { token, query })).status,
          200,
        );
      }
      const byService = 'server_admin_mau_current_mau_by_service';
      await eventually(
        'the user of irc',
        async () => (await metric(byService, '{app_service="irc"}')) || undefined,
      );
      assert.deepEqual(
        [await metric('server_admin_mau_current'), await metric(byService, '{app_service="mail"}')],
        [0, undefined],
        'users of services are counted and not limited',
      );
      await server.restart();
      clock.advance(2 * day);
      assert.deepEqual([await statusOf(users[0]), await statusOf(users[1])], [200, 403], 'the trial is over');
      const guest = await server.api('POST', '/_matrix/client/v3/register', {
        query: { kind: 'guest' },
        body: {},
      });
      assert.deepEqual([guest.status, guest.body], [403, exceeded]);
      clock.advance(minute);
      await users[0].sync();
      await server.restart();
      assert.equal((await users[0].sync()).rooms?.join, undefined, 'no notice was sent');
    });
  });

  describe('the count without a limit', () => {
    after(() => server.stop());

    it('exposes the number of monthly active users as a metric, and refuses no user [option: mau_stats_only]', async () => {
      await start({ mau_stats_only: true, max_mau_value: 1 });
      const users = [await newUser('alice'), await newUser('bob')] as const;
      for (const user of users) assert.equal(await statusOf(user), 200);
      await eventually(
        'two users',
        async () => (await metric('server_admin_mau_current')) === 2 || undefined,
      );
      await deactivate(users[0], 'alice');
      assert.equal(await metric('server_admin_mau_current'), 1, 'a deactivated account does not count');
      const known = new Set(server.homeserver.routes.map(({ contract }) => contract.operationId));
      assert.deepEqual(
        [...limitedOperations].filter((operation) => !known.has(operation)),
        [],
        'each limited operation has a route',
      );
    });
  });
});
