import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../../src/protocol/index.ts';
import { selectedDatabases } from '../support/databases/databases.ts';
import { validateResponse } from '../support/matrix-spec/matrix-spec.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const space = { type: 'm.space' };

/**
 * One listener for clients and federation, which receives the unsigned OpenID requests, and one for federation
 * over TLS.
 */
const listeners = [['client', 'federation'] as const, ['federation'] as const].map((names, index) => ({
  port: 0,
  type: 'http' as const,
  bind_addresses: ['127.0.0.1'],
  tls: index === 1,
  resources: [{ names: [...names] }],
}));

for (const database of selectedDatabases(import.meta.url)) {
  describe(`queries from other servers, on ${database}`, () => {
    let several: SeveralServers;
    let server: FederatedServer;
    let remote: ScriptedServer;
    let alice: TestClient;
    before(async () => {
      several = new SeveralServers(database);
      server = await several.homeserver('here.test', {
        config: {
          directory: { allow_public_rooms_over_federation: true, room_list_publication_rules: [{}] },
          http: { listeners },
          profiles: { limit_profile_requests_to_users_who_share_rooms: true },
        },
      });
      remote = await several.scripted('far.test');
      alice = await server.registerClient('alice');
    });
    after(() => several.stop());

    async function request(server: FederatedServer, method: string, path: string, body?: JsonObject) {
      const url = `/_matrix/federation/v1${path}`;
      const answer = await remote.request(server.name, method, url, body);
      assert.deepEqual(validateResponse(method, url, answer.status, answer.body).problems, [], path);
      return answer;
    }
    const get = (path: string) => request(server, 'GET', path);
    const errorOf = async (path: string) => {
      const { status, body } = await get(path);
      return `${status} ${body['errcode']}`;
    };

    describe('GET /query/profile', () => {
      const profile = (userId: string, field?: string) =>
        `/query/profile?user_id=${enc(userId)}${field === undefined ? '' : `&field=${enc(field)}`}`;

      it('returns the whole profile or one field, also of users who share no room with the remote server', async () => {
        await alice.do('PUT', `/profile/${enc(alice.id)}/avatar_url`, { avatar_url: 'mxc://here.test/face' });
        await alice.do('PUT', `/profile/${enc(alice.id)}/m.tz`, { 'm.tz': 'Europe/Berlin' });
        const fullProfile = {
          displayname: 'alice',
          avatar_url: 'mxc://here.test/face',
          'm.tz': 'Europe/Berlin',
        };
        assert.deepEqual((await get(profile(alice.id))).body, fullProfile);
        for (const [field, value] of Object.entries(fullProfile)) {
          assert.deepEqual((await get(profile(alice.id, field))).body, { [field]: value });
        }
      });

      it('returns an empty object for a profile field that is not set', async () => {
        for (const field of ['org.example.shoe_size', '__proto__']) {
          assert.deepEqual((await get(profile(alice.id, field))).body, {}, field);
        }
      });

      it('refuses profile queries for unknown users and users of other servers', async () => {
        assert.equal(await errorOf(profile('@nobody:here.test')), '404 M_NOT_FOUND');
        assert.equal(await errorOf(profile('@x:far.test')), '400 M_INVALID_PARAM');
        assert.equal(await errorOf(profile('alice')), '400 M_INVALID_PARAM');
        assert.equal(await errorOf(profile('@a\0b:here.test')), '400 M_INVALID_PARAM');
        assert.equal(await errorOf('/query/profile'), '400 M_MISSING_PARAM');
      });

      it('refuses profile queries where the operator has disabled them [option: allow_profile_lookup_over_federation]', async () => {
        const config = { profiles: { allow_profile_lookup_over_federation: false } };
        const restricted = await several.homeserver('silent.test', { config });
        const sam = await restricted.registerClient('sam');
        for (const userId of [sam.id, '@nobody:silent.test']) {
          const { status, body } = await request(restricted, 'GET', profile(userId));
          assert.deepEqual([status, body['errcode']], [403, 'M_FORBIDDEN']);
        }
        const profileForClients = await restricted.api('GET', `/_matrix/client/v3/profile/${enc(sam.id)}`);
        assert.equal(profileForClients.status, 200, 'clients still receive the profile');
      });
    });

    it('answers an unknown query type with 404', async () => {
      assert.equal(await errorOf('/query/weather?of=tomorrow'), '404 M_NOT_FOUND');
    });

    it('resolves an alias to the room id and the servers in the room', async () => {
      const roomId = await alice.createRoom({ preset: 'public_chat', room_alias_name: 'lounge' });
      const { body } = await get(`/query/directory?room_alias=${enc('#lounge:here.test')}`);
      assert.deepEqual(body, { room_id: roomId, servers: ['here.test'] });
      const alias = (name: string) => `/query/directory?room_alias=${enc(name)}`;
      assert.equal(await errorOf(alias('#nothing:here.test')), '404 M_NOT_FOUND');
      assert.equal(await errorOf(alias('#lounge:far.test')), '400 M_INVALID_PARAM');
      assert.equal(await errorOf(alias('lounge')), '400 M_INVALID_PARAM');
      assert.equal(await errorOf('/query/directory'), '400 M_MISSING_PARAM');
    });

    describe('GET and POST /publicRooms', () => {
      it('returns public rooms only where the operator allows it [option: allow_public_rooms_over_federation]', async () => {
        const lists = { room_list_publication_rules: [{}] };
        const restricted = await several.homeserver('unlisted.test', { config: { directory: lists } });
        const answers = [
          await request(restricted, 'GET', '/publicRooms'),
          await request(restricted, 'POST', '/publicRooms', { filter: {} }),
        ];
        for (const { status, body } of answers) {
          assert.deepEqual([status, body['errcode']], [403, 'M_FORBIDDEN']);
        }
        assert.equal((await get('/publicRooms')).status, 200);
      });

      it('returns pages, finds rooms by a search term and omits rooms that do not federate', async () => {
        for (const name of ['Ants', 'Bees', 'Cats']) {
          await alice.createRoom({ preset: 'public_chat', visibility: 'public', name });
        }
        const notFederated = { 'm.federate': false };
        await alice.createRoom({
          preset: 'public_chat',
          visibility: 'public',
          name: 'Dogs',
          creation_content: notFederated,
        });
        const names = ({ body }: { body: JsonObject }) =>
          (body['chunk'] as { name?: string }[]).map(({ name }) => name).sort();
        assert.deepEqual(
          names(await get('/publicRooms')),
          ['Ants', 'Bees', 'Cats'],
          'without rooms that do not federate',
        );
        assert.deepEqual(names(await get('/publicRooms?limit=0')), ['Ants', 'Bees', 'Cats'], 'no limit');
        const pagedNames: (string | undefined)[] = [];
        let since: unknown = '';
        for (let pages = 0; since !== undefined && pages < 5; pages++) {
          const page = await get(`/publicRooms?limit=2${since === '' ? '' : `&since=${enc(String(since))}`}`);
          pagedNames.push(...names(page));
          since = page.body['next_batch'];
        }
        assert.deepEqual(pagedNames.sort(), ['Ants', 'Bees', 'Cats']);
        const search = { filter: { generic_search_term: 'bee' } };
        assert.deepEqual(names(await request(server, 'POST', '/publicRooms', search)), ['Bees']);
        assert.deepEqual(
          names(await request(server, 'POST', '/publicRooms', { limit: 1, filter: {} })).length,
          1,
        );
        assert.equal(await errorOf('/publicRooms?since=nonsense'), '400 M_INVALID_PARAM');
        assert.equal(await errorOf('/publicRooms?limit=-1'), '400 M_INVALID_PARAM');
      });
    });

    describe('GET /hierarchy/{roomId}', () => {
      const hierarchy = (roomId: string, query = '') => get(`/hierarchy/${enc(roomId)}${query}`);
      const roomsIn = (list: unknown) => (list as { room_id: string }[]).map(({ room_id }) => room_id);

      it('returns accessible children, and lists inaccessible ones', async () => {
        const root = await alice.createRoom({ preset: 'public_chat', creation_content: space, name: 'Root' });
        const open = await alice.createRoom({ preset: 'public_chat', name: 'Open' });
        const secret = await alice.createRoom({ preset: 'private_chat', name: 'Secret' });
        const denied = await alice.createRoom({
          preset: 'public_chat',
          initial_state: [{ type: 'm.room.server_acl', content: { allow: ['*'], deny: ['far.test'] } }],
        });
        const localOnly = await alice.createRoom({
          preset: 'public_chat',
          creation_content: { 'm.federate': false },
        });
        const remoteChild = '!elsewhere:other.test';
        for (const child of [open, secret, denied, localOnly, remoteChild]) {
          const content = { via: ['here.test'], suggested: child === remoteChild };
          await alice.setState(root, 'm.space.child', content, child);
        }
        const { status, body } = await hierarchy(root);
        assert.equal(status, 200);
        const room = body['room'] as Record<string, unknown>;
        assert.deepEqual([room['room_id'], room['name'], room['room_type']], [root, 'Root', 'm.space']);
        const children = (room['children_state'] as { state_key: string }[]).map(
          ({ state_key }) => state_key,
        );
        assert.deepEqual(children.sort(), [open, secret, denied, localOnly, remoteChild].sort());
        assert.deepEqual(roomsIn(body['children']), [open]);
        const inaccessible = (body['inaccessible_children'] as string[]).sort();
        assert.deepEqual(inaccessible, [secret, denied, localOnly].sort());
        const suggested = (await hierarchy(root, '?suggested_only=true')).body;
        assert.deepEqual([suggested['children'], suggested['inaccessible_children']], [[], []]);
      });

      it('fails with 404 for rooms that the remote server cannot join', async () => {
        const unknown = await errorOf(`/hierarchy/${enc('!unknown:here.test')}`);
        assert.equal(unknown, '404 M_NOT_FOUND');
        const secret = await alice.createRoom({ preset: 'private_chat', creation_content: space });
        assert.equal(await errorOf(`/hierarchy/${enc(secret)}`), '404 M_NOT_FOUND');
        const denied = await alice.createRoom({
          preset: 'public_chat',
          creation_content: space,
          initial_state: [{ type: 'm.room.server_acl', content: { allow: ['*'], deny: ['far.test'] } }],
        });
        assert.equal(await errorOf(`/hierarchy/${enc(denied)}`), '404 M_NOT_FOUND');
        const localOnly = await alice.createRoom({
          preset: 'public_chat',
          creation_content: { ...space, 'm.federate': false },
        });
        assert.equal(await errorOf(`/hierarchy/${enc(localOnly)}`), '404 M_NOT_FOUND');
        const leftRoom = await alice.createRoom({ preset: 'public_chat', creation_content: space });
        assert.equal((await hierarchy(leftRoom)).status, 200);
        await alice.leave(leftRoom);
        assert.equal(
          await errorOf(`/hierarchy/${enc(leftRoom)}`),
          '404 M_NOT_FOUND',
          'the room has no local members',
        );
      });
    });

    it('returns the user id of a valid OpenID token to unsigned requests', async () => {
      const { access_token: token } = await alice.do(
        'POST',
        `/user/${enc(alice.id)}/openid/request_token`,
        {},
      );
      const userInfo = async (query: string) => {
        const url = `/_matrix/federation/v1/openid/userinfo${query}`;
        const { status, body } = await server.api('GET', url);
        return status === 200 ? body : `${status} ${body['errcode']}`;
      };
      assert.equal(await userInfo(`?access_token=${token}x`), '401 M_UNKNOWN_TOKEN');
      assert.equal(await userInfo(`?access_token=${alice.token}`), '401 M_UNKNOWN_TOKEN');
      assert.equal(await userInfo(''), '401 M_MISSING_TOKEN');
      assert.deepEqual(await userInfo(`?access_token=${token}`), { sub: alice.id });
    });
  });
}
