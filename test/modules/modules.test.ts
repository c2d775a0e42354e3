import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import type { EventRules, ModuleApi, NewEvent, SpamChecker } from 'hearth/module';
import { createLogger } from '../../src/kernel/observability/index.ts';
import type { JsonObject } from '../../src/protocol/index.ts';
import { eventually } from '../clients/eventually.ts';
import { skippableClock } from '../support/clocks/skippable-clock.ts';
import { selectedDatabases } from '../support/databases/databases.ts';
import { startTestServer, type TestServer, type TestUser } from '../support/servers/server.ts';
import { delegatingTo } from './delegating.ts';
import { registrations, resources } from './registering-module.ts';

const file = join(import.meta.dirname, 'registering-module.ts');
const client = '/_matrix/client/v3';
const denial = { errcode: 'ORG_TEST_NO', error: 'Not here', status: 418, extra: { 'org.test.why': 1 } };

/** The callbacks of the running test. */
let checker: SpamChecker = {};
let rules: EventRules = {};

for (const database of selectedDatabases(import.meta.url)) {
  describe(`modules on ${database}`, () => {
    let server: TestServer;
    let api: ModuleApi;
    let givenConfig: object;
    let otherListener: string;
    let alice: TestUser;
    let bob: TestUser;
    const clock = skippableClock();
    const log: Record<string, unknown>[] = [];

    before(async () => {
      registrations.set('all', (moduleApi, config) => {
        [api, givenConfig] = [moduleApi, config];
        api.registerSpamChecker(
          delegatingTo(
            () => checker,
            [
              'checkEvent',
              'checkStateEvent',
              'mayJoinRoom',
              'mayInvite',
              'mayCreateRoom',
              'mayCreateAlias',
              'mayPublishRoom',
              'checkRegistration',
              'checkLogin',
            ],
            'allow',
          ),
        );
        api.registerEventRules(
          delegatingTo(() => rules, ['checkEventAllowed', 'checkRoomCreation'], 'allow'),
        );
        api.registerEventRules(delegatingTo(() => rules, ['onNewEvent']));
        api.registerWebResource('/_synapse/client/test', async ({ method, path, query, body, user }) => ({
          status: 202,
          headers: { 'x-test': 'yes' },
          body: {
            method,
            path,
            q: query.get('q'),
            body: Buffer.from(body).toString(),
            user: (await user())?.userId ?? null,
          },
        }));
        api.registerWebResource('/_synapse/client/broken', () => {
          throw new Error('broken on purpose');
        });
        const unsendable: Record<string, unknown> = {
          body: { body: { count: 1n } },
          header: { headers: { 'x-line': 'a\r\nx-other: b' } },
          name: { headers: { 'a b': 'x' } },
          status: { status: 99 },
        };
        api.registerWebResource('/_synapse/client/unsendable', ({ path }) => unsendable[path] as object);
      });
      resources.set('resource', (config) => () => ({
        headers: { 'content-type': 'text/plain' },
        body: JSON.stringify(config),
      }));
      const listener = {
        port: 0,
        type: 'http' as const,
        bind_addresses: ['127.0.0.1'],
        resources: [{ names: ['client' as const, 'metrics' as const] }],
      };
      server = await startTestServer({
        database,
        clock,
        log: createLogger({
          level: 'info',
          destination: { write: (line) => void log.push(JSON.parse(line)) },
        }),
        listening: (addresses) => {
          otherListener = addresses[1]!;
        },
        config: {
          observability: { enable_metrics: true },
          modules: { modules: [{ module: file, config: { key: 'all', more: [1] } }] },
          http: {
            listeners: [
              {
                ...listener,
                additional_resources: { '/my/path': { module: file, config: { key: 'resource', a: 1 } } },
              },
              listener,
            ],
          },
        },
      });
      [alice, bob] = [await server.register('alice'), await server.register('bob')];
    });
    after(() => server.stop());
    afterEach(() => {
      [checker, rules] = [{}, {}];
    });

    const call = (user: TestUser, method: string, path: string, body?: object) =>
      server.api(method, `${client}${path}`, { token: user.token, ...(body && { body }) });
    const createRoom = async (body: object = {}) =>
      String((await call(alice, 'POST', '/createRoom', { preset: 'public_chat', ...body })).body['room_id']);
    let transactions = 0;
    const say = (user: TestUser, roomId: string, body: string) =>
      call(user, 'PUT', `/rooms/${roomId}/send/m.room.message/${transactions++}`, {
        msgtype: 'm.text',
        body,
      });
    const login = (body: object) => server.api('POST', `${client}/login`, { body });
    const failures = async (callback: string, reason: string) => {
      const { raw } = await server.api('GET', '/_synapse/metrics');
      const line = new RegExp(
        `^server_module_failures_total\\{.*callback="${callback}",reason="${reason}"\\} (\\d+)`,
        'm',
      );
      return Number(line.exec(raw)?.[1] ?? 0);
    };

    it('passes modules their configuration, and requests to a path and below it [option: modules[].module, modules[].config]', async () => {
      assert.deepEqual(givenConfig, { key: 'all', more: [1] });
      assert.equal(api.serverName, 'test');
      for (const prefix of ['/_synapse', '/_server']) {
        const answer = await server.api('POST', `${prefix}/client/test/a%20b/c?q=1`, {
          token: alice.token,
          body: { x: 1 },
        });
        assert.deepEqual(
          [answer.status, answer.headers.get('x-test'), answer.body],
          [202, 'yes', { method: 'POST', path: 'a b/c', q: '1', body: '{"x":1}', user: alice.userId }],
        );
      }
      const plain = await server.api('GET', '/_synapse/client/test');
      assert.deepEqual([plain.body['path'], plain.body['user']], ['', null]);
      const stale = await server.api('GET', '/_synapse/client/test', { token: 'nonsense' });
      assert.deepEqual([stale.status, stale.body['errcode']], [401, 'M_UNKNOWN_TOKEN']);
      const broken = await server.api('GET', '/_synapse/client/broken');
      assert.deepEqual([broken.status, broken.body['errcode']], [500, 'M_UNKNOWN']);
      assert.equal((await server.api('GET', '/_synapse/client/testing')).status, 404);
    });

    it('answers requests with status 500 and names the module, when the answer of a web resource cannot be sent', async () => {
      const failuresBefore = await failures('web resource /_server/client/unsendable', 'answer');
      for (const part of ['body', 'header', 'name', 'status']) {
        const { status, body } = await server.api('GET', `/_synapse/client/unsendable/${part}`);
        assert.deepEqual([part, status, body['error']], [part, 500, 'This resource failed to answer']);
      }
      assert.equal(await failures('web resource /_server/client/unsendable', 'answer'), failuresBefore + 4);
    });

    it('keeps modules from changing the prototype of all objects, for instance by setting a property at a path that a user sends', async () => {
      const roomId = await createRoom();
      checker = {
        checkEvent({ content }) {
          let object = {} as Record<string, unknown>;
          const path = String(content['body']).split('.');
          for (const name of path.slice(0, -1)) object = object[name] as Record<string, unknown>;
          object[path.at(-1)!] = true;
          return 'allow';
        },
      };
      assert.equal((await say(alice, roomId, 'seen')).status, 200);
      assert.equal((await say(alice, roomId, 'constructor.prototype.polluted')).status, 500);
      assert.equal((Object.prototype as Record<string, unknown>)['polluted'], undefined);
    });

    it('passes a module the requests to a path of one listener [option: listeners[].additional_resources.*.module, listeners[].additional_resources.*.config]', async () => {
      const answer = await server.api('GET', '/my/path/below');
      assert.deepEqual([answer.status, answer.raw], [200, '{"key":"resource","a":1}']);
      assert.equal((await server.api('GET', '/my/pathology')).status, 404);
      assert.equal((await fetch(`${otherListener}/my/path`)).status, 404);
      assert.equal((await fetch(`${otherListener}/_synapse/client/test`)).status, 202);
    });

    it('lets modules reject messages, state events, joins, invites, rooms, aliases, registrations and logins with errors of their own', async () => {
      const roomId = await createRoom();
      const deniedRequests: readonly [
        SpamChecker,
        () => Promise<{ status: number; body: Record<string, unknown> }>,
      ][] = [
        [
          { checkEvent: ({ content }) => (content['body'] === 'spam' ? denial : 'allow') },
          () => say(alice, roomId, 'spam'),
        ],
        [
          { checkStateEvent: async () => denial },
          () => call(alice, 'PUT', `/rooms/${roomId}/state/m.room.topic`, { topic: 'x' }),
        ],
        [
          { mayInvite: (_, invitee) => (invitee === bob.userId ? denial : 'allow') },
          () => call(alice, 'POST', `/rooms/${roomId}/invite`, { user_id: bob.userId }),
        ],
        [
          { mayJoinRoom: (userId) => (userId === bob.userId ? denial : 'allow') },
          () => call(bob, 'POST', `/rooms/${roomId}/join`, {}),
        ],
        [
          {
            mayCreateRoom: (_, events) =>
              events.some(({ type }) => type === 'm.room.name') ? denial : 'allow',
          },
          () => call(alice, 'POST', '/createRoom', { name: 'x' }),
        ],
        [
          { mayCreateAlias: (_, alias) => (alias === '#bad:test' ? denial : 'allow') },
          () => call(alice, 'PUT', '/directory/room/%23bad:test', { room_id: roomId }),
        ],
        [
          { checkRegistration: ({ userId }) => (userId === '@mallory:test' ? denial : 'allow') },
          () =>
            server.api('POST', `${client}/register`, {
              body: { username: 'mallory', password: 'correct horse', auth: { type: 'm.login.dummy' } },
            }),
        ],
        [
          { checkLogin: ({ deviceId }) => (deviceId === 'BAD' ? denial : 'allow') },
          () =>
            login({ type: 'm.login.password', user: 'alice', password: 'correct horse', device_id: 'BAD' }),
        ],
      ];
      for (const [callbacks, request] of deniedRequests) {
        checker = callbacks;
        const { status, body } = await request();
        const [name] = Object.keys(callbacks);
        assert.deepEqual(
          [name, status, body['errcode'], body['error'], body['org.test.why']],
          [name, 418, 'ORG_TEST_NO', 'Not here', 1],
        );
      }
      checker = {};
      for (const [, request] of deniedRequests) {
        const { status } = await request();
        assert.equal(status, 200);
      }
    });

    it('lets modules forbid a room in the room directory, events by the state of the room, and new rooms, and change what users send', async () => {
      const roomId = await createRoom({ topic: 'quiet' });
      checker = { mayPublishRoom: () => denial };
      const published = await call(alice, 'PUT', `/directory/list/room/${roomId}`, { visibility: 'public' });
      assert.deepEqual([published.status, published.body['errcode']], [403, 'M_FORBIDDEN']);
      rules = {
        async checkEventAllowed({ type, sender }, state) {
          if (type !== 'm.room.message') return 'allow';
          const topic = await state.get('m.room.topic', '');
          assert.equal(await state.membership(sender), 'join');
          assert.equal(await state.get('m.room.topic', 'none'), undefined);
          return topic?.content['topic'] === 'quiet' ? denial : 'allow';
        },
      };
      assert.equal((await say(alice, roomId, 'hello')).status, 418);
      assert.equal((await say(alice, await createRoom({ topic: 'loud' }), 'hello')).status, 200);
      rules = {
        checkEventAllowed: ({ content }) =>
          content['body'] === 'password' ? { content: { msgtype: 'm.text', body: '********' } } : 'allow',
      };
      const { body: sent } = await say(alice, roomId, 'password');
      const stored = await call(alice, 'GET', `/rooms/${roomId}/event/${sent['event_id']}`);
      assert.deepEqual(stored.body['content'], { msgtype: 'm.text', body: '********' });
      rules = { checkRoomCreation: () => denial };
      assert.equal((await call(alice, 'POST', '/createRoom', {})).status, 418);
    });

    it('lets modules change the content of memberships, redactions and new rooms, but not their effects', async () => {
      const secret: EventRules = {
        checkEventAllowed: ({ content }) => ({
          content: Object.fromEntries(
            Object.entries(content).map(([name, value]) =>
              ['displayname', 'reason', 'topic'].includes(name) ? [name, '***'] : [name, value],
            ),
          ),
        }),
      };
      for (const room_version of ['10', '12']) {
        rules = secret;
        const roomId = await createRoom({ topic: 'secret', name: 'Open', room_version });
        assert.equal((await call(bob, 'POST', `/rooms/${roomId}/join`, {})).status, 200);
        const { body: sent } = await say(bob, roomId, 'hello');
        const path = `/rooms/${roomId}/redact/${sent['event_id']}/${transactions++}`;
        const { body: redaction } = await call(alice, 'PUT', path, { reason: 'secret' });
        rules = {};
        const contentOf = async (path: string) => (await call(alice, 'GET', `/rooms/${roomId}${path}`)).body;
        assert.equal((await contentOf('/state/m.room.topic'))['topic'], '***');
        assert.equal((await contentOf('/state/m.room.name'))['name'], 'Open');
        assert.deepEqual(await contentOf(`/state/m.room.member/${bob.userId}`), {
          membership: 'join',
          displayname: '***',
        });
        const event = (await contentOf(`/event/${redaction['event_id']}`)) as Record<string, object>;
        assert.equal((event['content'] as Record<string, unknown>)['reason'], '***');
        rules = { checkEventAllowed: () => ({ content: {} }) };
        const kick = await call(alice, 'POST', `/rooms/${roomId}/kick`, { user_id: bob.userId });
        assert.equal(kick.status, 500);
        const refused = await call(alice, 'POST', '/createRoom', { room_version });
        assert.equal(refused.status, 500);
      }
    });

    it('ignores what modules write to events that they have received or returned', async () => {
      const roomId = await createRoom({ topic: 'stored' });
      await call(bob, 'POST', `/rooms/${roomId}/join`, {});
      const write = (content: JsonObject) =>
        Object.assign(content, { membership: 'leave', topic: 'written' });
      const received: JsonObject[] = [];
      const returned: { msgtype: string; body: string }[] = [];
      checker = {
        checkEvent: ({ content }) => {
          write(content);
          return 'allow';
        },
      };
      rules = {
        async checkEventAllowed({ type, content }, state) {
          if (type === 'm.room.member') return { content: write(content) };
          write((await state.get('m.room.topic', ''))!.content);
          const contentOfModule = { msgtype: 'm.text', body: 'own' };
          returned.push(contentOfModule);
          return { content: contentOfModule };
        },
        onNewEvent: ({ content }) => void received.push(write(content)),
      };
      const memberContent = { membership: 'join', displayname: 'B' };
      const path = `/rooms/${roomId}/state/m.room.member/${bob.userId}`;
      assert.equal((await call(bob, 'PUT', path, memberContent)).status, 500);
      const sending = say(bob, roomId, 'hello');
      await eventually('the content of the module', () => returned.length === 1);
      returned[0]!.body = 'changed';
      const { body: sent } = await sending;
      await eventually('the new event', () => received.length === 1);
      [checker, rules] = [{}, {}];
      const contentOf = async (path: string) => (await call(alice, 'GET', `/rooms/${roomId}${path}`)).body;
      const event = await contentOf(`/event/${sent['event_id']}`);
      assert.deepEqual(event['content'], { msgtype: 'm.text', body: 'own' });
      assert.equal((await contentOf('/state/m.room.topic'))['topic'], 'stored');
      const joined = (await contentOf(`/state/m.room.member/${bob.userId}`))['membership'];
      assert.equal(joined, 'join');
    });

    it('passes to modules whether a joining user was invited, and does not call them for changes of profiles', async () => {
      const roomId = await createRoom();
      const joins: unknown[] = [];
      checker = {
        mayJoinRoom: (...values) => {
          joins.push(values);
          return 'allow';
        },
      };
      await call(bob, 'POST', `/rooms/${roomId}/join`, {});
      await call(bob, 'POST', `/rooms/${roomId}/leave`, {});
      await call(alice, 'POST', `/rooms/${roomId}/invite`, { user_id: bob.userId });
      await call(bob, 'POST', `/rooms/${roomId}/join`, {});
      await call(bob, 'PUT', `/rooms/${roomId}/state/m.room.member/${bob.userId}`, {
        membership: 'join',
        displayname: 'B',
      });
      assert.deepEqual(joins, [
        [bob.userId, roomId, false],
        [bob.userId, roomId, true],
      ]);
    });

    it('rejects the event when the check of a module throws, returns a rejected promise, returns an unknown answer or never answers, and names the module in the log and in metrics', async () => {
      const roomId = await createRoom();
      const broken: readonly [string, SpamChecker['checkEvent'] & object][] = [
        [
          'error',
          () => {
            throw new Error('on purpose');
          },
        ],
        ['error', () => Promise.reject(new Error('on purpose'))],
        ['answer', () => undefined as never],
        ['answer', () => ({ errcode: 'X', error: 'x', status: 200 })],
        ['timeout', () => new Promise<never>(() => {})],
      ];
      for (const [reason, checkEvent] of broken) {
        const failuresBefore = await failures('checkEvent', reason);
        checker = { checkEvent };
        const { status, body } = await clock.skipping(10_000, say(alice, roomId, 'hello'));
        checker = {};
        assert.deepEqual([status, body['errcode']], [500, 'M_UNKNOWN'], reason);
        assert.equal(await failures('checkEvent', reason), failuresBefore + 1, reason);
        const line = log.findLast(({ msg }) => msg === 'A callback of a module failed');
        assert.deepEqual(
          [line?.['module'], line?.['callback'], line?.['reason']],
          [file, 'checkEvent', reason],
        );
      }
      assert.equal((await say(alice, roomId, 'hello')).status, 200);
    });

    it('names a module that blocks the process in the log and in metrics', async () => {
      checker = {
        checkEvent: () => {
          clock.advance(150);
          return 'allow';
        },
      };
      assert.equal((await say(alice, await createRoom(), 'hello')).status, 200);
      assert.ok((await failures('checkEvent', 'blocking')) > 0);
      const line = log.findLast(({ msg }) => msg === 'A callback of a module blocked the process');
      assert.deepEqual([line?.['module'], line?.['callback']], [file, 'checkEvent']);
    });

    it('passes modules new events in order and lets them send events as users, also when a receiver fails', async () => {
      const roomId = await createRoom();
      const received: NewEvent[] = [];
      rules = {
        async onNewEvent(event, state) {
          if (event.type !== 'm.room.message') return;
          received.push(event);
          if (event.content['body'] !== 'ping') throw new Error('on purpose');
          assert.equal(await state.membership(alice.userId), 'join');
          await api.rooms.send({
            roomId,
            sender: alice.userId,
            type: 'm.room.message',
            content: { msgtype: 'm.notice', body: 'pong' },
          });
        },
      };
      const { body } = await say(alice, roomId, 'ping');
      await eventually('the answer of the module', () => received.length === 2);
      assert.equal(received[0]?.eventId, body['event_id']);
      assert.deepEqual(
        received.map(({ content }) => content['body']),
        ['ping', 'pong'],
      );
      await eventually(
        'the failure of the receiver',
        async () => (await failures('onNewEvent', 'error')) > 0,
      );
      const topic = {
        roomId,
        sender: alice.userId,
        type: 'm.room.topic',
        stateKey: '',
        content: { topic: 'x' },
      };
      await api.rooms.send(topic);
      assert.deepEqual((await api.rooms.state(roomId).get('m.room.topic', ''))?.content, { topic: 'x' });
      await assert.rejects(api.rooms.send({ ...topic, sender: '@stranger:test' }), {
        errcode: 'M_FORBIDDEN',
      });
    });
  });
}
