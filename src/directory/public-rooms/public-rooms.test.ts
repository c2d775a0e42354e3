import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases, selectedDatabases } from '../../../test/support/databases/databases.ts';
import {
  type ConfigurationOverrides,
  startTestServer,
  type TestServer,
  type TestUser,
} from '../../../test/support/servers/server.ts';
import type { DirectoryConfig } from '../config.ts';

const v3 = '/_matrix/client/v3';
const allowAll = { user_id: '*', alias: '*', room_id: '*', action: 'allow' as const };
const everybodyMayPublish = { directory: { room_list_publication_rules: [allowAll] } };

type Listed = { room_id: string; name?: string; num_joined_members: number };

/** A server, and requests for its public room list. */
class Lists {
  readonly server: TestServer;

  constructor(server: TestServer) {
    this.server = server;
  }

  static async start(database: 'sqlite' | 'postgres', directory: Partial<DirectoryConfig> = {}) {
    const config = {
      directory: { ...everybodyMayPublish.directory, ...directory },
    } as ConfigurationOverrides;
    return new Lists(await startTestServer({ database, config }));
  }

  async room(user: TestUser, body: object): Promise<string> {
    const answer = await this.server.api('POST', `${v3}/createRoom`, { token: user.token, body });
    assert.equal(answer.status, 200, answer.raw);
    return String(answer.body['room_id']);
  }

  join(user: TestUser, roomId: string) {
    return this.server.api('POST', `${v3}/join/${encodeURIComponent(roomId)}`, {
      token: user.token,
      body: {},
    });
  }

  state(user: TestUser, roomId: string, type: string, body: object) {
    return this.server.api('PUT', `${v3}/rooms/${encodeURIComponent(roomId)}/state/${type}/`, {
      token: user.token,
      body,
    });
  }

  search(user: TestUser, body: object, query: Record<string, string> = {}) {
    return this.server.api('POST', `${v3}/publicRooms`, { token: user.token, body, query });
  }

  async names(user: TestUser, body: object): Promise<(string | undefined)[]> {
    const answer = await this.search(user, body);
    assert.equal(answer.status, 200, answer.raw);
    return (answer.body['chunk'] as Listed[]).map(({ name }) => name);
  }

  setVisibility(user: TestUser | undefined, roomId: string, body: object) {
    return this.server.api('PUT', `${v3}/directory/list/room/${encodeURIComponent(roomId)}`, {
      ...(user && { token: user.token }),
      body,
    });
  }

  async visibility(roomId: string): Promise<unknown> {
    const path = `${v3}/directory/list/room/${encodeURIComponent(roomId)}`;
    return (await this.server.api('GET', path)).body['visibility'];
  }
}

for (const database of selectedDatabases(import.meta.url)) {
  describe(`public room list on ${database}`, () => {
    let lists: Lists;
    let alice: TestUser;
    let bob: TestUser;
    const rooms = new Map<string, string>();

    before(async () => {
      lists = await Lists.start(database);
      alice = await lists.server.register('alice');
      bob = await lists.server.register('bob');
      for (const [name, more] of [
        ['Rainbow', { topic: 'Colours of the sky', room_alias_name: 'rainbow' }],
        ['世界の部屋', {}],
        ['Space', { creation_content: { type: 'm.space' } }],
        ['100% _sure_', {}],
      ] as const) {
        rooms.set(name, await lists.room(alice, { visibility: 'public', name, ...more }));
      }
      await lists.room(alice, { name: 'Hidden', preset: 'public_chat' });
      await lists.join(bob, rooms.get('Rainbow')!);
    });
    after(() => lists.server.stop());

    it('lists the room with the most members first, and the description of each room', async () => {
      const answer = await lists.server.api('GET', `${v3}/publicRooms`, { token: bob.token });
      const [first] = answer.body['chunk'] as Listed[];
      assert.deepEqual(first, {
        room_id: rooms.get('Rainbow'),
        name: 'Rainbow',
        topic: 'Colours of the sky',
        canonical_alias: '#rainbow:test',
        num_joined_members: 2,
        world_readable: false,
        guest_can_join: false,
        join_rule: 'public',
      });
      assert.equal(answer.body['total_room_count_estimate'], 4);
      assert.equal((answer.body['chunk'] as Listed[]).length, 4);
    });

    it('searches name, topic and alias in any script, ignoring case', async () => {
      const find = (term: string) => lists.names(bob, { filter: { generic_search_term: term } });
      assert.deepEqual(await find('RAINB'), ['Rainbow']);
      assert.deepEqual(await find('the sky'), ['Rainbow']);
      assert.deepEqual(await find('#rainbow:te'), ['Rainbow']);
      assert.deepEqual(await find('世界'), ['世界の部屋']);
      assert.deepEqual(await find('%'), ['100% _sure_']);
      assert.deepEqual(await find('_sure_'), ['100% _sure_']);
      assert.deepEqual(await find('hidden'), []);
      assert.deepEqual(await find("'; drop table room_stats; --"), []);
    });

    it('neither shows nor finds names that were redacted', async () => {
      const roomId = await lists.room(alice, { visibility: 'public', name: 'Rude', topic: 'Ruder' });
      assert.deepEqual(await lists.names(bob, { filter: { generic_search_term: 'ruder' } }), ['Rude']);
      const room = `${v3}/rooms/${encodeURIComponent(roomId)}`;
      for (const type of ['m.room.name', 'm.room.topic']) {
        const { token } = alice;
        const state = await lists.server.api('GET', `${room}/state`, { token });
        const entry = (state.body as unknown as { type: string; event_id: string }[]).find(
          (one) => one.type === type,
        );
        assert.ok(entry);
        const path = `${room}/redact/${encodeURIComponent(entry.event_id)}/${type}`;
        assert.equal((await lists.server.api('PUT', path, { token, body: {} })).status, 200);
      }
      assert.deepEqual(await lists.names(bob, { filter: { generic_search_term: 'rude' } }), []);
      assert.ok((await lists.names(bob, {})).includes(undefined), 'it is listed without a name');
      assert.equal((await lists.setVisibility(alice, roomId, { visibility: 'private' })).status, 200);
    });

    it('lists only rooms of the requested room types, and none for an empty list of types', async () => {
      const namesOfTypes = (...types: (string | null)[]) =>
        lists.names(bob, { filter: { room_types: types } });
      assert.deepEqual(await namesOfTypes('m.space'), ['Space']);
      assert.deepEqual((await namesOfTypes(null)).length, 3);
      assert.deepEqual((await namesOfTypes(null, 'm.space')).length, 4);
      assert.deepEqual(await namesOfTypes(), []);
    });

    it('paginates the list forwards and backwards', async () => {
      const page = async (since?: unknown) =>
        (await lists.search(bob, { limit: 1, ...(since === undefined ? undefined : { since }) })).body;
      const pages: Record<string, unknown>[] = [await page()];
      while (pages.at(-1)?.['next_batch'] !== undefined) pages.push(await page(pages.at(-1)?.['next_batch']));
      const ids = (body: Record<string, unknown> | undefined) =>
        ((body?.['chunk'] ?? []) as Listed[]).map(({ room_id }) => room_id);
      assert.equal(pages.length, 4);
      assert.equal(new Set(pages.flatMap(ids)).size, 4);
      assert.equal(pages[0]?.['prev_batch'], undefined);
      let back = await page(pages[3]?.['prev_batch']);
      assert.deepEqual(ids(back), ids(pages[2]));
      assert.ok(back['next_batch']);
      back = await page(back['prev_batch']);
      back = await page(back['prev_batch']);
      assert.deepEqual(ids(back), ids(pages[0]));
      assert.equal(back['prev_batch'], undefined);
    });

    it('rejects malformed requests for the list with 400 M_INVALID_PARAM', async () => {
      for (const body of [{ since: 'x' }, { since: 'f' }, { limit: -1 }]) {
        const answer = await lists.search(bob, body);
        assert.deepEqual([answer.status, answer.body['errcode']], [400, 'M_INVALID_PARAM'], answer.raw);
      }
      const both = { include_all_networks: true, third_party_instance_id: 'irc' };
      assert.equal((await lists.search(bob, both)).status, 400);
      assert.equal((await lists.search(bob, {}, { server: 'not a server' })).status, 400);
      assert.equal((await lists.search(bob, {}, { server: 'test' })).status, 200);
      assert.equal((await lists.search(bob, { third_party_instance_id: 'irc\0' })).status, 200);
    });

    it('lists a room only while it has members and can be joined or read', async () => {
      const roomId = await lists.room(alice, { visibility: 'public', name: 'Brief' });
      const isListed = async () => (await lists.names(bob, { limit: 50 })).includes('Brief');
      assert.equal(await isListed(), true);
      await lists.state(alice, roomId, 'm.room.join_rules', { join_rule: 'invite' });
      assert.equal(await isListed(), false, 'users cannot join it');
      await lists.state(alice, roomId, 'm.room.history_visibility', { history_visibility: 'world_readable' });
      assert.equal(await isListed(), true, 'all users can read it');
      assert.equal((await lists.setVisibility(alice, roomId, { visibility: 'private' })).status, 200);
      assert.equal(await isListed(), false);
      assert.equal((await lists.setVisibility(alice, roomId, {})).status, 200);
      assert.equal(await isListed(), true);
      await lists.server.api('POST', `${v3}/rooms/${encodeURIComponent(roomId)}/leave`, {
        token: alice.token,
        body: {},
      });
      assert.equal(await isListed(), false, 'it has no members');
    });

    it('rejects changes of the visibility of a room by users without the power level for aliases, and changes in the list of a network by users other than its application service', async () => {
      const roomId = rooms.get('Rainbow')!;
      const refused = await lists.setVisibility(bob, roomId, { visibility: 'private' });
      assert.deepEqual([refused.status, refused.body['errcode']], [403, 'M_FORBIDDEN']);
      assert.equal((await lists.setVisibility(undefined, roomId, {})).status, 401);
      assert.equal((await lists.setVisibility(alice, '!unknown:test', {})).status, 404);
      assert.equal(await lists.visibility(roomId), 'public');
      const unknown = await lists.server.api('GET', `${v3}/directory/list/room/!unknown:test`);
      assert.deepEqual([unknown.status, unknown.body['errcode']], [404, 'M_NOT_FOUND']);
      const service = `${v3}/directory/list/appservice/irc/${encodeURIComponent(roomId)}`;
      const answer = await lists.server.api('PUT', service, {
        token: alice.token,
        body: { visibility: 'public' },
      });
      assert.equal(answer.status, 403);
    });

    it('lists a room that was published just before a restart', async () => {
      const roomId = await lists.room(alice, { visibility: 'public', name: 'Late' });
      await lists.server.restart();
      assert.ok((await lists.names(alice, { limit: 50 })).includes('Late'));
      await lists.setVisibility(alice, roomId, { visibility: 'private' });
    });
  });
}

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('options for the public room list and for aliases', () => {
    const withLists = async (
      directory: Partial<DirectoryConfig>,
      use: (lists: Lists, alice: TestUser) => Promise<void>,
    ) => {
      const lists = await Lists.start(kind, directory);
      try {
        await use(lists, await lists.server.register('alice'));
      } finally {
        await lists.server.stop();
      }
    };
    const list = (lists: Lists) => lists.server.api('GET', `${v3}/publicRooms`);

    it('[option: allow_public_rooms_without_auth] lists public rooms without an access token only when enabled', async () => {
      await withLists({}, async (lists) => {
        const answer = await list(lists);
        assert.deepEqual([answer.status, answer.body['errcode']], [401, 'M_MISSING_TOKEN']);
      });
      await withLists({ allow_public_rooms_without_auth: true }, async (lists, alice) => {
        await lists.room(alice, { visibility: 'public', name: 'Open' });
        assert.equal(((await list(lists)).body['chunk'] as Listed[]).length, 1);
        assert.equal((await lists.server.api('POST', `${v3}/publicRooms`, { body: {} })).status, 401);
      });
    });

    it('[option: enable_room_list_search] returns no rooms when search is disabled', async () => {
      await withLists({ enable_room_list_search: false }, async (lists, alice) => {
        await lists.room(alice, { visibility: 'public', name: 'Open' });
        assert.deepEqual(await lists.names(alice, {}), []);
        assert.deepEqual(await lists.names(alice, { filter: { generic_search_term: 'open' } }), []);
      });
    });

    it('[option: stats.enabled] lists no rooms when statistics are disabled', async () => {
      await withLists({ stats: { enabled: false } }, async (lists, alice) => {
        await lists.room(alice, { visibility: 'public', name: 'Open' });
        assert.deepEqual(await lists.names(alice, {}), []);
      });
    });

    it('[option: room_list_publication_rules[].user_id, room_list_publication_rules[].alias, room_list_publication_rules[].room_id, room_list_publication_rules[].action] lists only rooms that the rules allow', async () => {
      const rules = [
        { ...allowAll, user_id: '@mallory:*', action: 'deny' as const },
        { ...allowAll, alias: '#open_*:test' },
      ];
      await withLists({ room_list_publication_rules: rules }, async (lists, alice) => {
        const mallory = await lists.server.register('mallory');
        const open = { visibility: 'public', room_alias_name: 'open_1', name: 'Open' };
        const refused = await lists.room(alice, { visibility: 'public', name: 'No alias' });
        await lists.room(alice, open);
        await lists.room(mallory, { ...open, room_alias_name: 'open_2', name: 'Denied' });
        assert.deepEqual(await lists.names(alice, {}), ['Open']);
        assert.equal(await lists.visibility(refused), 'private', 'created, but not listed');
        assert.equal((await lists.setVisibility(alice, refused, {})).status, 403);
      });
      await withLists({ room_list_publication_rules: null }, async (lists, alice) => {
        const roomId = await lists.room(alice, { visibility: 'public', name: 'Open' });
        assert.equal(await lists.visibility(roomId), 'private');
        const refused = await lists.setVisibility(alice, roomId, {});
        assert.equal(refused.status, 403);
        assert.match(String(refused.body['error']), /room_list_publication_rules/);
        assert.equal((await lists.setVisibility(alice, roomId, { visibility: 'private' })).status, 200);
      });
      await withLists(
        { room_list_publication_rules: [{ ...allowAll, room_id: '!none:*' }] },
        async (lists, alice) => {
          const roomId = await lists.room(alice, { visibility: 'public', name: 'Open' });
          assert.equal(await lists.visibility(roomId), 'private');
        },
      );
    });

    it('[option: alias_creation_rules[].user_id, alias_creation_rules[].alias, alias_creation_rules[].room_id, alias_creation_rules[].action] rejects aliases that the rules deny', async () => {
      const rules = [
        { ...allowAll, user_id: '@mallory:test', action: 'deny' as const },
        { ...allowAll, alias: '#team_*:test' },
      ];
      await withLists({ alias_creation_rules: rules }, async (lists, alice) => {
        const mallory = await lists.server.register('mallory');
        const roomId = await lists.room(alice, { room_alias_name: 'team_1' });
        const createAlias = (user: TestUser, alias: string, room = roomId) =>
          lists.server.api('PUT', `${v3}/directory/room/${encodeURIComponent(alias)}`, {
            token: user.token,
            body: { room_id: room },
          });
        assert.equal((await createAlias(alice, '#team_2:test')).status, 200);
        assert.equal((await createAlias(alice, '#other:test')).body['errcode'], 'M_FORBIDDEN');
        const own = await lists.room(mallory, {});
        assert.equal((await createAlias(mallory, '#team_3:test', own)).body['errcode'], 'M_FORBIDDEN');
        const refused = await lists.server.api('POST', `${v3}/createRoom`, {
          token: alice.token,
          body: { room_alias_name: 'other' },
        });
        assert.deepEqual([refused.status, refused.body['errcode']], [403, 'M_FORBIDDEN']);
      });
      await withLists(
        { alias_creation_rules: [{ ...allowAll, room_id: '!none:*' }] },
        async (lists, alice) => {
          const roomId = await lists.room(alice, {});
          const answer = await lists.server.api(
            'PUT',
            `${v3}/directory/room/${encodeURIComponent('#a:test')}`,
            {
              token: alice.token,
              body: { room_id: roomId },
            },
          );
          assert.equal(answer.status, 403);
        },
      );
    });

    it('[option: require_membership_for_aliases] lets users create an alias of a room that they are not in only when the option is false', async () => {
      for (const [required, status] of [
        [true, 403],
        [false, 200],
      ] as const) {
        const config = { rooms: { require_membership_for_aliases: required } };
        const lists = new Lists(await startTestServer({ database: kind, config }));
        const [alice, bob] = [await lists.server.register('alice'), await lists.server.register('bob')];
        const roomId = await lists.room(alice, {});
        const answer = await lists.server.api(
          'PUT',
          `${v3}/directory/room/${encodeURIComponent('#b:test')}`,
          {
            token: bob.token,
            body: { room_id: roomId },
          },
        );
        await lists.server.stop();
        assert.equal(answer.status, status);
      }
    });
  });
});
