import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../../src/protocol/index.ts';
import { selectedDatabases } from '../support/databases/databases.ts';
import { runs } from '../support/inputs/thoroughness.ts';
import type { ScriptedAnswer, ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const v1 = '/_matrix/federation/v1';

/** Error responses of a remote server, and the status and errcode that clients receive for them. */
const errorResponses: Record<string, [ScriptedAnswer, status: number, errcode: string]> = {
  'answers M_NOT_FOUND': [[404, { errcode: 'M_NOT_FOUND', error: 'No' }], 404, 'M_NOT_FOUND'],
  'answers M_FORBIDDEN': [[403, { errcode: 'M_FORBIDDEN', error: 'No' }], 403, 'M_FORBIDDEN'],
  'answers M_UNKNOWN_TOKEN': [[401, { errcode: 'M_UNKNOWN_TOKEN', error: 'x' }], 502, 'M_UNKNOWN'],
  'answers M_UNRECOGNIZED': [[404, { errcode: 'M_UNRECOGNIZED', error: 'x' }], 404, 'M_NOT_FOUND'],
};

for (const database of selectedDatabases(import.meta.url)) {
  describe(`queries to other servers, on ${database}`, () => {
    let several: SeveralServers;
    let here: FederatedServer;
    let remote: ScriptedServer;
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
      remote = await several.scripted('far.test');
      [alice, bob] = [await here.registerClient('alice'), await here.registerClient('bob')];
    });
    after(() => several.stop());
    beforeEach(() => {
      remote.receivedRequests.length = 0;
      remote.on('', () => [404, { errcode: 'M_NOT_FOUND', error: 'Not scripted' }]);
    });

    const refusal = async (method: string, path: string, body?: unknown) => {
      const answer = await alice.request(method, `/_matrix/client${path}`, body);
      return `${answer.status} ${answer.body['errcode']}`;
    };
    const get = async (path: string) => {
      const answer = await alice.request('GET', `/_matrix/client${path}`, undefined);
      assert.equal(answer.status, 200, answer.raw);
      return answer.body;
    };

    describe('remote profiles', () => {
      let users = 0;
      const newUser = () => `@user${users++}:far.test`;
      const path = (userId: string, field = '') => `/v3/profile/${enc(userId)}${field && `/${enc(field)}`}`;
      const answerWith = (profile: JsonObject) => remote.on(`GET ${v1}/query/profile`, () => profile);

      it("returns a remote profile as the user's server sends it, and requests the profile once", async () => {
        const userId = newUser();
        answerWith({ displayname: 'Zoe', avatar_url: 'mxc://far.test/zoe', 'org.example.pet': { cats: 2 } });
        const profile = await get(path(userId));
        assert.deepEqual(profile, {
          displayname: 'Zoe',
          avatar_url: 'mxc://far.test/zoe',
          'org.example.pet': { cats: 2 },
        });
        assert.deepEqual(await get(path(userId, 'displayname')), { displayname: 'Zoe' });
        assert.deepEqual(await get(path(userId, 'org.example.pet')), { 'org.example.pet': { cats: 2 } });
        assert.deepEqual(await get(path(userId, 'm.tz')), {});
        assert.deepEqual(await get(path(userId, '__proto__')), {});
        assert.deepEqual(
          remote.receivedRequests.map(({ query }) => Object.fromEntries(query)),
          [{ user_id: userId }],
        );
      });

      it('returns a remote profile without invalid fields', async () => {
        answerWith({ displayname: 5, avatar_url: { url: 'x' }, 'm.tz': null, 'org.example.a': null });
        assert.deepEqual(await get(path(newUser())), {});
        answerWith({ avatar_url: 'https://far.test/x' });
        assert.deepEqual(await get(path(newUser())), { avatar_url: 'https://far.test/x' });
      });

      it('fails with 502 for a remote profile that is too large', async () => {
        answerWith({ 'org.example.a': 'x'.repeat(70_000) });
        assert.equal(await refusal('GET', path(newUser())), '502 M_UNKNOWN');
        answerWith({ 'org.example.a': 'x'.repeat(300_000) });
        assert.equal(await refusal('GET', path(newUser())), '502 M_UNKNOWN');
      });

      for (const [what, [answer, status, errcode]] of Object.entries(errorResponses)) {
        it(`answers a profile request with ${status} ${errcode} when the remote server ${what}`, async () => {
          const userId = newUser();
          remote.on(`GET ${v1}/query/profile`, () => answer);
          assert.equal(await refusal('GET', path(userId)), `${status} ${errcode}`);
        });
      }

      it('fails for profiles on servers outside the whitelist, unreachable servers and invalid server names', async () => {
        assert.equal(await refusal('GET', path('@x:elsewhere.test')), '403 M_FORBIDDEN');
        assert.equal(await refusal('GET', path('@x:down.test')), '502 M_UNKNOWN');
        assert.equal(await refusal('GET', path('@x:not a server')), '400 M_INVALID_PARAM');
      });
    });

    describe('remote aliases', () => {
      const path = (alias: string) => `/v3/directory/room/${enc(alias)}`;
      const answerWith = (answer: JsonObject) => remote.on(`GET ${v1}/query/directory`, () => answer);

      it('resolves a remote alias to the room id and the valid server names of the response', async () => {
        answerWith({
          room_id: '!room:far.test',
          servers: ['far.test', 5, 'not a server', 'far.test', 'other.test'],
        });
        const expected = { room_id: '!room:far.test', servers: ['far.test', 'other.test'] };
        assert.deepEqual(await get(path('#room:far.test')), expected);
        assert.deepEqual(Object.fromEntries(remote.receivedRequests[0]!.query), {
          room_alias: '#room:far.test',
        });
      });

      it('fails with 502 when the response for a remote alias is invalid', async () => {
        for (const answer of [
          {},
          { room_id: 5, servers: [] },
          { room_id: 'x', servers: [] },
          { room_id: '!a:b' },
        ]) {
          answerWith(answer);
          assert.equal(await refusal('GET', path('#room:far.test')), '502 M_UNKNOWN', JSON.stringify(answer));
        }
        answerWith({ room_id: '!room:far.test', servers: Array.from({ length: 10_001 }, () => 'far.test') });
        assert.equal(await refusal('GET', path('#room:far.test')), '502 M_UNKNOWN');
      });

      it('answers 404 for an alias that does not exist, 403 for a server outside the whitelist and 400 for an invalid alias', async () => {
        assert.equal(await refusal('GET', path('#nothing:far.test')), '404 M_NOT_FOUND');
        assert.equal(await refusal('GET', path('#nothing:here.test')), '404 M_NOT_FOUND');
        assert.equal(await refusal('GET', path('#nothing:elsewhere.test')), '403 M_FORBIDDEN');
        assert.equal(await refusal('GET', path('#nothing')), '400 M_INVALID_PARAM');
      });
    });

    describe('remote public room lists', () => {
      const entry = {
        room_id: '!a:far.test',
        num_joined_members: 3,
        world_readable: true,
        guest_can_join: false,
      };
      const listed = { ...entry, name: 'A', canonical_alias: '#a:far.test', join_rule: 'knock' };

      it('returns the public rooms of a remote server with its paging tokens', async () => {
        const page = { chunk: [listed], next_batch: 'n', prev_batch: 'p', total_room_count_estimate: 7 };
        remote.on(`GET ${v1}/publicRooms`, () => page);
        assert.deepEqual(await get('/v3/publicRooms?server=far.test&limit=5&since=s'), page);
        assert.deepEqual(Object.fromEntries(remote.receivedRequests[0]!.query), { limit: '5', since: 's' });
      });

      it('passes a search filter to the remote server', async () => {
        remote.on(`POST ${v1}/publicRooms`, () => ({ chunk: [listed] }));
        const filter = { generic_search_term: 'a', room_types: [null, 'm.space'] };
        const answer = await alice.request('POST', '/_matrix/client/v3/publicRooms?server=far.test', {
          filter,
        });
        assert.deepEqual(answer.body, { chunk: [listed] });
        assert.deepEqual(remote.receivedRequests[0]!.body, { filter, limit: 100 });
      });

      it('returns the public rooms of a remote server without invalid rooms and fields', async () => {
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
        remote.on(
          `GET ${v1}/publicRooms`,
          () => ({ chunk, next_batch: 5, total_room_count_estimate: -1 }) as JsonObject,
        );
        assert.deepEqual(await get('/v3/publicRooms?server=far.test'), {
          chunk: [{ ...entry, num_joined_members: 0, world_readable: false, join_rule: 'public' }],
        });
        remote.on(`GET ${v1}/publicRooms`, () => ({ rooms: [] }));
        assert.equal(await refusal('GET', '/v3/publicRooms?server=far.test'), '502 M_UNKNOWN');
      });

      it('fails a request for remote public rooms when the server refuses it, is outside the whitelist or is unreachable', async () => {
        remote.on(`GET ${v1}/publicRooms`, () => [403, { errcode: 'M_FORBIDDEN', error: 'No' }]);
        assert.equal(await refusal('GET', '/v3/publicRooms?server=far.test'), '403 M_FORBIDDEN');
        assert.equal(await refusal('GET', '/v3/publicRooms?server=elsewhere.test'), '403 M_FORBIDDEN');
        assert.equal(await refusal('GET', '/v3/publicRooms?server=down.test'), '502 M_UNKNOWN');
      });
    });

    describe('remote spaces and rooms', () => {
      const summary = (roomId: string, more: JsonObject = {}): JsonObject => ({
        room_id: roomId,
        num_joined_members: 2,
        world_readable: false,
        guest_can_join: false,
        join_rule: 'public',
        ...more,
      });
      const hierarchyOf = (roomId: string, children: JsonObject[] = []): JsonObject => ({
        room: summary(roomId, { name: 'Far', children_state: [], room_type: 'm.space' }),
        children,
        inaccessible_children: [],
      });

      it("includes remote rooms in a local space's hierarchy, and requests them again for each user", async () => {
        const root = await alice.createRoom({ preset: 'public_chat', creation_content: { type: 'm.space' } });
        const [space, broken] = ['!space:far.test', '!broken:far.test'];
        const via = ['here.test', 'down.test', 'not a server', 'elsewhere.test', 'far.test'];
        for (const child of [space, broken]) await alice.setState(root, 'm.space.child', { via }, child);
        remote.on(`GET ${v1}/hierarchy/${space}`, () => hierarchyOf(space));
        remote.on(`GET ${v1}/hierarchy/${broken}`, () => ({ room: { room_id: broken }, children: 'none' }));
        const { rooms } = await get(`/v1/rooms/${enc(root)}/hierarchy`);
        assert.deepEqual(
          (rooms as { room_id: string }[]).map(({ room_id }) => room_id),
          [root, space],
        );
        const requestCount = remote.receivedRequests.length;
        await bob.request('GET', `/_matrix/client/v1/rooms/${enc(root)}/hierarchy`, undefined);
        assert.equal(remote.receivedRequests.length, 2 * requestCount);
        // A change of access takes effect at the next request.
        remote.on(`GET ${v1}/hierarchy/${space}`, () => {
          const hierarchy = hierarchyOf(space);
          const room = { ...(hierarchy.room as JsonObject), join_rule: 'invite', world_readable: false };
          return { ...hierarchy, room };
        });
        const later = await get(`/v1/rooms/${enc(root)}/hierarchy`);
        assert.deepEqual(
          (later['rooms'] as { room_id: string }[]).map(({ room_id }) => room_id),
          [root],
        );
      });

      it('returns the summary of a remote room by room id and by alias', async () => {
        const room = '!shown:far.test';
        remote.on(`GET ${v1}/hierarchy/${room}`, () => hierarchyOf(room));
        remote.on(`GET ${v1}/query/directory`, () => ({ room_id: room, servers: ['far.test'] }));
        const path = (idOrAlias: string, query = '') => `/v1/room_summary/${enc(idOrAlias)}${query}`;
        const summary = await get(path(room, '?via=far.test'));
        assert.deepEqual(
          [summary['room_id'], summary['name'], summary['membership']],
          [room, 'Far', 'leave'],
        );
        assert.deepEqual(await get(path('#shown:far.test')), summary);
        assert.equal(await refusal('GET', path('!hidden:far.test', '?via=far.test')), '404 M_NOT_FOUND');
        assert.equal(await refusal('GET', path('!hidden:far.test', '?via=here.test')), '404 M_NOT_FOUND');
      });
    });

    it('answers 200, 404 or 502 to the client, whatever another server responds', async () => {
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
      const anyValue = fc.oneof(leaf, fc.array(fc.oneof(room, leaf), { maxLength: 3 }), room);
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
        anyValue,
      );
      let answerCount = 0;
      await fc.assert(
        fc.asyncProperty(answers, room, async (fields, roomFields) => {
          const id = answerCount++;
          const summary = { children_state: [], ...roomFields, room_id: `!any${id}:far.test` };
          const answer = { children: [], inaccessible_children: [], room: summary, ...fields };
          remote.on('', (_request, response) => {
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
            const { status } = await alice.request('GET', `/_matrix/client${path}`, undefined);
            assert.ok([200, 404, 502].includes(status), `${path}: ${status}`);
          }
        }),
        { numRuns: runs(60) },
      );
    });

    it('sends one request to a server that fails, and then backs off', async () => {
      const failing = await several.scripted('unwell.test');
      failing.on('', () => [500, { errcode: 'M_UNKNOWN', error: 'Ouch' }]);
      for (let i = 0; i < 3; i++) {
        assert.equal(await refusal('GET', `/v3/profile/${enc(`@u${i}:unwell.test`)}`), '502 M_UNKNOWN');
      }
      assert.equal(failing.receivedRequests.filter(({ path }) => path.endsWith('/query/profile')).length, 1);
    });
  });
}
