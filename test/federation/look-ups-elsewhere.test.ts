import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../../src/protocol/index.ts';
import { serverDatabases } from '../support/databases/databases.ts';
import type { ScriptedAnswer, ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const v1 = '/_matrix/federation/v1';

/** A server that refuses, is unwell, or makes no sense, and what clients hear of that. */
const bad: Record<string, [ScriptedAnswer, status: number, errcode: string]> = {
  'does not know it': [[404, { errcode: 'M_NOT_FOUND', error: 'No' }], 404, 'M_NOT_FOUND'],
  'does not tell': [[403, { errcode: 'M_FORBIDDEN', error: 'No' }], 403, 'M_FORBIDDEN'],
  'says that the client is logged out': [[401, { errcode: 'M_UNKNOWN_TOKEN', error: 'x' }], 502, 'M_UNKNOWN'],
  'does not know the endpoint': [[404, { errcode: 'M_UNRECOGNIZED', error: 'x' }], 404, 'M_NOT_FOUND'],
};

for (const database of serverDatabases(import.meta.url)) {
  describe(`what is looked up at other servers, on ${database}`, () => {
    let several: SeveralServers;
    let here: FederatedServer;
    let far: ScriptedServer;
    let alice: TestClient;
    let bob: TestClient;
    before(async () => {
      several = new SeveralServers(database);
      here = await several.homeserver('here.test', {
        config: {
          federationClient: {
            federation: { max_short_retries: 0 },
            federation_domain_whitelist: ['far.test', 'down.test', 'unwell.test'],
          },
        },
      });
      far = await several.scripted('far.test');
      [alice, bob] = [await here.registerClient('alice'), await here.registerClient('bob')];
    });
    after(() => several.stop());
    beforeEach(() => {
      far.asked.length = 0;
      far.on('', () => [404, { errcode: 'M_NOT_FOUND', error: 'Not scripted' }]);
    });

    const refusal = async (method: string, path: string, body?: unknown) => {
      const answer = await alice.ask(method, `/_matrix/client${path}`, body);
      return `${answer.status} ${answer.body['errcode']}`;
    };
    const get = async (path: string) => {
      const answer = await alice.ask('GET', `/_matrix/client${path}`, undefined);
      assert.equal(answer.status, 200, answer.raw);
      return answer.body;
    };

    describe('profiles', () => {
      let users = 0;
      const newUser = () => `@user${users++}:far.test`;
      const path = (userId: string, field = '') => `/v3/profile/${enc(userId)}${field && `/${enc(field)}`}`;
      const tell = (profile: JsonObject) => far.on(`GET ${v1}/query/profile`, () => profile);

      it('are what the user’s server says, and asked for once', async () => {
        const userId = newUser();
        tell({ displayname: 'Zoe', avatar_url: 'mxc://far.test/zoe', 'org.example.pet': { cats: 2 } });
        const profile = await get(path(userId));
        assert.deepEqual(profile, {
          displayname: 'Zoe',
          avatar_url: 'mxc://far.test/zoe',
          'org.example.pet': { cats: 2 },
        });
        assert.deepEqual(await get(path(userId, 'displayname')), { displayname: 'Zoe' });
        assert.deepEqual(await get(path(userId, 'org.example.pet')), { 'org.example.pet': { cats: 2 } });
        assert.equal(await refusal('GET', path(userId, 'm.tz')), '404 M_NOT_FOUND');
        assert.equal(await refusal('GET', path(userId, '__proto__')), '404 M_NOT_FOUND');
        assert.deepEqual(
          far.asked.map(({ query }) => Object.fromEntries(query)),
          [{ user_id: userId }],
        );
      });

      it('lack what makes no sense', async () => {
        tell({ displayname: 5, avatar_url: 'https://far.test/x', 'm.tz': null, 'org.example.a': null });
        assert.deepEqual(await get(path(newUser())), {});
      });

      it('are not larger than any may be', async () => {
        tell({ 'org.example.a': 'x'.repeat(70_000) });
        assert.equal(await refusal('GET', path(newUser())), '502 M_UNKNOWN');
        tell({ 'org.example.a': 'x'.repeat(300_000) });
        assert.equal(await refusal('GET', path(newUser())), '502 M_UNKNOWN');
      });

      for (const [what, [answer, status, errcode]] of Object.entries(bad)) {
        it(`of a server that ${what} are a ${status} ${errcode}`, async () => {
          const userId = newUser();
          far.on(`GET ${v1}/query/profile`, () => answer);
          assert.equal(await refusal('GET', path(userId)), `${status} ${errcode}`);
        });
      }

      it('are not asked for where there is no federation, or nobody is there', async () => {
        assert.equal(await refusal('GET', path('@x:elsewhere.test')), '403 M_FORBIDDEN');
        assert.equal(await refusal('GET', path('@x:down.test')), '502 M_UNKNOWN');
        assert.equal(await refusal('GET', path('@x:not a server')), '400 M_INVALID_PARAM');
      });
    });

    describe('aliases', () => {
      const path = (alias: string) => `/v3/directory/room/${enc(alias)}`;
      const tell = (answer: JsonObject) => far.on(`GET ${v1}/query/directory`, () => answer);

      it('lead where their server says', async () => {
        tell({
          room_id: '!room:far.test',
          servers: ['far.test', 5, 'not a server', 'far.test', 'other.test'],
        });
        const expected = { room_id: '!room:far.test', servers: ['far.test', 'other.test'] };
        assert.deepEqual(await get(path('#room:far.test')), expected);
        assert.deepEqual(Object.fromEntries(far.asked[0]!.query), { room_alias: '#room:far.test' });
      });

      it('lead nowhere when that makes no sense', async () => {
        for (const answer of [
          {},
          { room_id: 5, servers: [] },
          { room_id: 'x', servers: [] },
          { room_id: '!a:b' },
        ]) {
          tell(answer);
          assert.equal(await refusal('GET', path('#room:far.test')), '502 M_UNKNOWN', JSON.stringify(answer));
        }
        tell({ room_id: '!room:far.test', servers: Array.from({ length: 10_001 }, () => 'far.test') });
        assert.equal(await refusal('GET', path('#room:far.test')), '502 M_UNKNOWN');
      });

      it('that do not exist are not found', async () => {
        assert.equal(await refusal('GET', path('#nothing:far.test')), '404 M_NOT_FOUND');
        assert.equal(await refusal('GET', path('#nothing:here.test')), '404 M_NOT_FOUND');
        assert.equal(await refusal('GET', path('#nothing:elsewhere.test')), '403 M_FORBIDDEN');
        assert.equal(await refusal('GET', path('#nothing')), '400 M_INVALID_PARAM');
      });
    });

    describe('lists of public rooms', () => {
      const entry = {
        room_id: '!a:far.test',
        num_joined_members: 3,
        world_readable: true,
        guest_can_join: false,
      };
      const listed = { ...entry, name: 'A', canonical_alias: '#a:far.test', join_rule: 'knock' };

      it('are passed on, with the page that was asked for', async () => {
        const page = { chunk: [listed], next_batch: 'n', prev_batch: 'p', total_room_count_estimate: 7 };
        far.on(`GET ${v1}/publicRooms`, () => page);
        assert.deepEqual(await get('/v3/publicRooms?server=far.test&limit=5&since=s'), page);
        assert.deepEqual(Object.fromEntries(far.asked[0]!.query), { limit: '5', since: 's' });
      });

      it('can be searched', async () => {
        far.on(`POST ${v1}/publicRooms`, () => ({ chunk: [listed] }));
        const filter = { generic_search_term: 'a', room_types: [null, 'm.space'] };
        const answer = await alice.ask('POST', '/_matrix/client/v3/publicRooms?server=far.test', { filter });
        assert.deepEqual(answer.body, { chunk: [listed] });
        assert.deepEqual(far.asked[0]!.body, { filter, limit: 100 });
      });

      it('lack what clients would stumble over', async () => {
        const chunk = [
          5,
          { ...entry, room_id: 7 },
          {
            ...entry,
            name: 5,
            topic: null,
            canonical_alias: 'x',
            avatar_url: 'http://x/',
            num_joined_members: -1.5,
            world_readable: 'yes',
            '<script>': 1,
          },
        ];
        far.on(
          `GET ${v1}/publicRooms`,
          () => ({ chunk, next_batch: 5, total_room_count_estimate: -1 }) as JsonObject,
        );
        assert.deepEqual(await get('/v3/publicRooms?server=far.test'), {
          chunk: [{ ...entry, num_joined_members: 0, world_readable: false, join_rule: 'public' }],
        });
        far.on(`GET ${v1}/publicRooms`, () => ({ rooms: [] }));
        assert.equal(await refusal('GET', '/v3/publicRooms?server=far.test'), '502 M_UNKNOWN');
      });

      it('may be refused', async () => {
        far.on(`GET ${v1}/publicRooms`, () => [403, { errcode: 'M_FORBIDDEN', error: 'No' }]);
        assert.equal(await refusal('GET', '/v3/publicRooms?server=far.test'), '403 M_FORBIDDEN');
        assert.equal(await refusal('GET', '/v3/publicRooms?server=elsewhere.test'), '403 M_FORBIDDEN');
        assert.equal(await refusal('GET', '/v3/publicRooms?server=down.test'), '502 M_UNKNOWN');
      });
    });

    describe('spaces and rooms', () => {
      const summary = (roomId: string, more: JsonObject = {}): JsonObject => ({
        room_id: roomId,
        num_joined_members: 2,
        world_readable: false,
        guest_can_join: false,
        join_rule: 'public',
        ...more,
      });
      const far_ = (roomId: string, children: JsonObject[] = []): JsonObject => ({
        room: summary(roomId, { name: 'Far', children_state: [], room_type: 'm.space' }),
        children,
        inaccessible_children: [],
      });

      it('of other servers are part of the trees here', async () => {
        const root = await alice.createRoom({ preset: 'public_chat', creation_content: { type: 'm.space' } });
        const [space, broken] = ['!space:far.test', '!broken:far.test'];
        const via = ['here.test', 'down.test', 'not a server', 'elsewhere.test', 'far.test'];
        for (const child of [space, broken]) await alice.setState(root, 'm.space.child', { via }, child);
        far.on(`GET ${v1}/hierarchy/${space}`, () => far_(space));
        far.on(`GET ${v1}/hierarchy/${broken}`, () => ({ room: { room_id: broken }, children: 'none' }));
        const { rooms } = await get(`/v1/rooms/${enc(root)}/hierarchy`);
        assert.deepEqual(
          (rooms as { room_id: string }[]).map(({ room_id }) => room_id),
          [root, space],
        );
        const asked = far.asked.length;
        await bob.ask('GET', `/_matrix/client/v1/rooms/${enc(root)}/hierarchy`, undefined);
        assert.equal(far.asked.length, asked, 'what was told is remembered');
      });

      it('of other servers show what they are, by id and by alias', async () => {
        const room = '!shown:far.test';
        far.on(`GET ${v1}/hierarchy/${room}`, () => far_(room));
        far.on(`GET ${v1}/query/directory`, () => ({ room_id: room, servers: ['far.test'] }));
        const path = (idOrAlias: string, query = '') => `/v1/room_summary/${enc(idOrAlias)}${query}`;
        const shown = await get(path(room, '?via=far.test'));
        assert.deepEqual([shown['room_id'], shown['name'], shown['membership']], [room, 'Far', 'leave']);
        assert.deepEqual(await get(path('#shown:far.test')), shown);
        assert.equal(await refusal('GET', path('!hidden:far.test', '?via=far.test')), '404 M_NOT_FOUND');
        assert.equal(await refusal('GET', path('!hidden:far.test', '?via=here.test')), '404 M_NOT_FOUND');
      });
    });

    it('nothing that another server answers breaks the answer to a client', async () => {
      const leaf = fc.oneof(
        fc.jsonValue({ maxDepth: 2 }),
        fc.constantFrom(
          '!a:far.test',
          '#a:far.test',
          'far.test',
          'mxc://far.test/a',
          'public',
          'm.space',
          '\0',
          5,
        ),
      );
      const room = fc.dictionary(
        fc.constantFrom(
          ...[
            'room_id',
            'name',
            'topic',
            'avatar_url',
            'canonical_alias',
            'join_rule',
            'room_type',
            '__proto__',
          ],
          ...['num_joined_members', 'world_readable', 'guest_can_join', 'children_state', 'allowed_room_ids'],
        ),
        leaf,
      );
      const some = fc.oneof(leaf, fc.array(fc.oneof(room, leaf), { maxLength: 3 }), room);
      const answers = fc.dictionary(
        fc.constantFrom(
          ...[
            'displayname',
            'avatar_url',
            'm.tz',
            'org.example.x',
            '__proto__',
            'room_id',
            'servers',
            'chunk',
          ],
          ...['next_batch', 'total_room_count_estimate', 'room', 'children', 'inaccessible_children'],
        ),
        some,
      );
      let made = 0;
      await fc.assert(
        fc.asyncProperty(answers, room, async (given, shown) => {
          const id = made++;
          const summary = { children_state: [], ...shown, room_id: `!any${id}:far.test` };
          const answer = { children: [], inaccessible_children: [], room: summary, ...given };
          far.on('', (_request, response) => {
            response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
            return undefined;
          });
          for (const path of [
            `/v3/profile/${enc(`@any${id}:far.test`)}`,
            `/v3/profile/${enc(`@any${id}:far.test`)}/displayname`,
            `/v3/directory/room/${enc(`#any${id}:far.test`)}`,
            '/v3/publicRooms?server=far.test',
            `/v1/room_summary/${enc(`!any${id}:far.test`)}?via=far.test`,
          ]) {
            const { status } = await alice.ask('GET', `/_matrix/client${path}`, undefined);
            assert.ok([200, 404, 502].includes(status), `${path}: ${status}`);
          }
        }),
        { numRuns: 60 },
      );
    });

    it('a server that is unwell is left alone for a while', async () => {
      const unwell = await several.scripted('unwell.test');
      unwell.on('', () => [500, { errcode: 'M_UNKNOWN', error: 'Ouch' }]);
      for (let i = 0; i < 3; i++) {
        assert.equal(await refusal('GET', `/v3/profile/${enc(`@u${i}:unwell.test`)}`), '502 M_UNKNOWN');
      }
      assert.equal(unwell.asked.filter(({ path }) => path.endsWith('/query/profile')).length, 1);
    });
  });
}
