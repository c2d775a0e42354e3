import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { startTestServer, type TestServer, type TestUser } from '../../test/support/servers/server.ts';
import { type SeenEvent, TestRoom } from '../../test/support/users/test-room.ts';

interface Result {
  readonly rank: number;
  readonly result: SeenEvent & { readonly room_id: string };
  readonly context?: {
    readonly events_before: SeenEvent[];
    readonly events_after: SeenEvent[];
    readonly start: string;
    readonly end: string;
    readonly profile_info?: Record<string, { displayname?: string }>;
  };
}

interface Found {
  readonly count: number;
  readonly highlights: string[];
  readonly results: Result[];
  readonly next_batch?: string;
  readonly state?: Record<string, SeenEvent[]>;
  readonly groups?: Record<string, Record<string, { results: string[]; order: number; next_batch?: string }>>;
}

const bodies = ({ results }: Found) => results.map(({ result }) => result.content['body']);

forSelectedDatabases(import.meta.url, (open) => {
  describe('POST /search', () => {
    let server: TestServer;
    let alice: TestUser;
    let bob: TestUser;
    before(async () => {
      server = await startTestServer({ database: open.kind });
      [alice, bob] = [await server.register('alice'), await server.register('bob')];
    });
    after(() => server.stop());

    const sendRequest = (user: TestUser, criteria: object, token?: string) =>
      server.api('POST', '/_matrix/client/v3/search', {
        token: user.token,
        body: { search_categories: { room_events: criteria } },
        ...(token === undefined ? undefined : { query: { next_batch: token } }),
      });
    const search = async (user: TestUser, search_term: string, more: object = {}, token?: string) => {
      const answer = await sendRequest(user, { search_term, order_by: 'recent', ...more }, token);
      assert.equal(answer.status, 200, answer.raw);
      return (answer.body['search_categories'] as { room_events: Found }).room_events;
    };
    const inRoom = (talk: TestRoom, more: object = {}) => ({ filter: { rooms: [talk.roomId], ...more } });

    it('compares about a megabyte of texts for one page, and the other texts for the next pages', async () => {
      const talk = await TestRoom.create(server, alice, [bob]);
      const text = 'long '.repeat(4_000);
      for (let index = 0; index < 70; index++) await talk.say(alice, `needle ${index} ${text}`);
      const seen: unknown[] = [];
      let page: Found | undefined;
      for (let token: string | undefined; !page || token !== undefined; token = page.next_batch) {
        page = await search(bob, 'needle', inRoom(talk, { limit: 50 }), token);
        if (seen.length === 0) assert.ok(page.count < 70, `${page.count} matches on the first page`);
        seen.push(...bodies(page));
      }
      assert.equal(new Set(seen).size, 70);
      assert.equal(seen.length, 70);
    });

    it('ends a page of results early when their context is long, and returns the other results on the next pages', async () => {
      const talk = await TestRoom.create(server, alice, [bob]);
      for (let index = 0; index < 10; index++) {
        await talk.say(alice, `haystack ${index}`);
        for (let other = 0; other < 5; other++) await talk.say(alice, 'x'.repeat(55_000));
      }
      const context = { event_context: { before_limit: 20, after_limit: 20 }, include_state: true };
      for (const order_by of ['recent', 'rank']) {
        const sizes: number[] = [];
        const seen: unknown[] = [];
        let page: Found | undefined;
        for (let token: string | undefined; !page || token !== undefined; token = page.next_batch) {
          page = await search(bob, 'haystack', { ...inRoom(talk), ...context, order_by }, token);
          sizes.push(page.results.length);
          seen.push(...bodies(page));
          if (page.results.length > 0) assert.ok(page.state?.[talk.roomId]);
        }
        assert.equal(new Set(seen).size, 10, `${sizes}`);
        assert.equal(seen.length, 10);
        assert.ok(sizes[0]! < 10, `${sizes}`);
      }
    });

    it('finds words, parts of words, and scripts without spaces', async () => {
      const talk = await TestRoom.create(server, alice, [bob]);
      const texts = [
        'The quick brown fox',
        'Grüße aus Köln',
        '今天天气很好',
        'こんにちは世界',
        '안녕하세요',
        'emoji 🎉',
      ];
      for (const text of texts) await talk.say(alice, text);
      for (const [term, index] of [
        ['quick', 0],
        ['uic', 0],
        ['FOX brown', 0],
        ['koln', 1],
        ['天气', 2],
        ['好', 2],
        ['世界', 3],
        ['하세', 4],
        ['🎉', 5],
      ] as const) {
        assert.deepEqual(bodies(await search(bob, term, inRoom(talk))), [texts[index]], term);
      }
      assert.deepEqual(bodies(await search(bob, 'quick world', inRoom(talk))), []);
      assert.deepEqual(bodies(await search(bob, '', inRoom(talk))), []);
      assert.deepEqual((await search(bob, 'Quick brown', inRoom(talk))).highlights, ['quick', 'brown']);
    });

    it('returns highlights with the spelling of the results, for clients that do not ignore accents', async () => {
      const talk = await TestRoom.create(server, alice);
      await talk.say(alice, 'Ein Café in KÖLN');
      const highlights = async (term: string) => (await search(alice, term, inRoom(talk))).highlights.sort();
      assert.deepEqual(await highlights('koln cafe'), ['cafe', 'café', 'koln', 'köln']);
      assert.deepEqual(await highlights('Köln'), ['koln', 'köln']);
      assert.deepEqual(await highlights('ein'), ['ein']);
    });

    it('finds names and topics of rooms by the requested keys', async () => {
      const talk = await TestRoom.create(server, alice, [], {
        name: 'Penguins',
        topic: 'All about penguins',
      });
      await talk.say(alice, 'penguins!');
      const types = async (more: object) =>
        (await search(alice, 'penguins', more)).results.map(({ result }) => result.type);
      assert.deepEqual(await types({}), ['m.room.message', 'm.room.topic', 'm.room.name']);
      assert.deepEqual(await types({ keys: ['content.name'] }), ['m.room.name']);
      assert.deepEqual(await types({ keys: ['content.topic', 'content.body'] }), [
        'm.room.message',
        'm.room.topic',
      ]);
    });

    it('finds topics by the text of m.topic', async () => {
      const talk = await TestRoom.create(server, alice);
      const representations = [
        { mimetype: 'text/html', body: '<b>Albatross</b>' },
        { mimetype: 'text/plain', body: 'Puffins' },
      ];
      await talk.setState(alice, 'm.room.topic', {
        topic: 'Seabirds',
        'm.topic': { 'm.text': representations },
      });
      const count = async (term: string) => (await search(alice, term, inRoom(talk))).results.length;
      assert.deepEqual(
        [await count('puffins'), await count('seabirds'), await count('albatross')],
        [1, 1, 0],
      );
      await talk.setState(alice, 'm.room.topic', {
        topic: '',
        'm.topic': { 'm.text': [{ body: 'Terns' }] },
      });
      assert.equal(await count('terns'), 1);
    });

    it('finds edited events by their latest text, and no redacted events', async () => {
      const talk = await TestRoom.create(server, alice);
      const message = await talk.say(alice, 'walrus');
      await talk.edit(alice, message, 'seal');
      assert.equal((await search(alice, 'seal', inRoom(talk))).results.length, 1);
      const gone = await talk.say(alice, 'dodo');
      assert.equal((await search(alice, 'dodo', inRoom(talk))).results.length, 1);
      await talk.redact(alice, gone);
      assert.deepEqual((await search(alice, 'dodo', inRoom(talk))).results, []);
    });

    it('paginates results by time, in all rooms and in groups', async () => {
      const talk = await TestRoom.create(server, alice, [bob]);
      for (let count = 1; count <= 5; count++) await talk.say(count % 2 ? alice : bob, `otter ${count}`);
      const filter = inRoom(talk, { limit: 2 });
      const groupings = { group_by: [{ key: 'room_id' }, { key: 'sender' }] };
      const first = await search(alice, 'otter', { ...filter, groupings });
      assert.deepEqual(bodies(first), ['otter 5', 'otter 4']);
      const second = await search(alice, 'otter', filter, first.next_batch);
      assert.deepEqual(bodies(second), ['otter 3', 'otter 2']);
      const third = await search(alice, 'otter', filter, second.next_batch);
      assert.deepEqual(bodies(third), ['otter 1']);
      assert.equal(third.next_batch, undefined);
      const { room_id: rooms, sender: senders } = first.groups!;
      assert.deepEqual(
        rooms![talk.roomId]!.results,
        first.results.map(({ result }) => result.event_id),
      );
      const ofBob = senders![bob.userId]!;
      assert.equal(ofBob.results.length, 1);
      assert.deepEqual(bodies(await search(alice, 'otter', filter, ofBob.next_batch)), ['otter 2']);
    });

    it('counts matches beyond the page', async () => {
      const talk = await TestRoom.create(server, alice);
      for (let count = 1; count <= 5; count++) await talk.say(alice, `badger ${count}`);
      const recent = { ...inRoom(talk, { limit: 2 }), order_by: 'recent' };
      const first = await search(alice, 'badger', recent);
      assert.deepEqual([bodies(first), first.count], [['badger 5', 'badger 4'], 5]);
      const second = await search(alice, 'badger', recent, first.next_batch);
      assert.deepEqual([bodies(second), second.count], [['badger 3', 'badger 2'], 5]);
      const third = await search(alice, 'badger', recent, second.next_batch);
      assert.deepEqual([bodies(third), third.count, third.next_batch], [['badger 1'], 5, undefined]);
    });

    it('returns next_batch with every full page, and not with the empty page after it', async () => {
      const talk = await TestRoom.create(server, alice);
      for (let count = 1; count <= 4; count++) await talk.say(alice, `walrus ${count}`);
      for (const order_by of ['recent', 'rank']) {
        const request = { ...inRoom(talk, { limit: 2 }), order_by };
        const first = await search(alice, 'walrus', request);
        const second = await search(alice, 'walrus', request, first.next_batch);
        assert.deepEqual([first.results.length, second.results.length], [2, 2], order_by);
        assert.ok(second.next_batch, order_by);
        const third = await search(alice, 'walrus', request, second.next_batch);
        assert.deepEqual([third.results, third.next_batch], [[], undefined], order_by);
      }
    });

    it('ranks short texts with the exact term first', async () => {
      const talk = await TestRoom.create(server, alice);
      const texts = [
        'sea lion',
        'the lion came out of the sea',
        'I saw a sea lion at the beach once',
        'a sea lion!',
      ];
      for (const text of texts) await talk.say(alice, text);
      const filter = inRoom(talk, { limit: 3 });
      const ranked = await search(alice, 'sea lion', { ...filter, order_by: 'rank' });
      assert.deepEqual(bodies(ranked), [texts[0], texts[3], texts[2]]);
      assert.equal(ranked.count, 4);
      assert.ok(ranked.results[0]!.rank > ranked.results[2]!.rank);
      const rest = await search(alice, 'sea lion', { ...filter, order_by: 'rank' }, ranked.next_batch);
      assert.deepEqual(bodies(rest), [texts[1]]);
      assert.equal(rest.next_batch, undefined);
    });

    it('returns context, profiles and room state of results', async () => {
      const talk = await TestRoom.create(server, alice, [bob]);
      for (const text of ['one', 'two', 'badger', 'three', 'four']) await talk.say(bob, text);
      const event_context = { before_limit: 1, after_limit: 2, include_profile: true };
      const found = await search(alice, 'badger', { ...inRoom(talk), event_context, include_state: true });
      const { context } = found.results[0]!;
      const bodiesOf = (events: SeenEvent[]) => events.map(({ content }) => content['body']);
      assert.deepEqual(bodiesOf(context!.events_before), ['two']);
      assert.deepEqual(bodiesOf(context!.events_after), ['three', 'four']);
      assert.deepEqual(context!.profile_info, { [bob.userId]: { displayname: 'bob' } });
      const query = { dir: 'b', from: context!.start, limit: 1 };
      const earlier = (await talk.call(alice, 'GET', '/messages', { query })).body['chunk'] as SeenEvent[];
      assert.deepEqual(bodiesOf(earlier), ['one']);
      assert.ok(found.state![talk.roomId]!.some(({ type }) => type === 'm.room.create'));
      const usual = await search(alice, 'badger', { ...inRoom(talk), event_context: {} });
      assert.equal(usual.results[0]!.context!.events_after.length, 2);
      assert.equal(usual.results[0]!.context!.profile_info, undefined);
    });

    it('finds only events that the user may see', async () => {
      const visibility = { type: 'm.room.history_visibility', content: { history_visibility: 'joined' } };
      const talk = await TestRoom.create(server, alice, [], {
        preset: 'public_chat',
        initial_state: [visibility],
      });
      await talk.say(alice, 'secret early');
      assert.deepEqual(bodies(await search(bob, 'secret')), []);
      await talk.join(bob);
      await talk.say(alice, 'secret during');
      await talk.leave(bob);
      await talk.say(alice, 'secret late');
      assert.deepEqual(bodies(await search(bob, 'secret')), ['secret during']);
      assert.equal((await search(bob, 'secret')).count, 1);
      assert.deepEqual(bodies(await search(bob, 'secret', { filter: { not_rooms: [talk.roomId] } })), []);
      await talk.call(bob, 'POST', '/forget', { body: {} });
      assert.deepEqual(bodies(await search(bob, 'secret')), []);
      const invited = await TestRoom.create(server, alice, [], {
        preset: 'private_chat',
        invite: [bob.userId],
      });
      await invited.say(alice, 'secret invitation');
      assert.deepEqual(bodies(await search(bob, 'secret')), []);
      assert.equal((await search(alice, 'secret')).count, 4);
    });

    it('finds no events of ignored users', async () => {
      const talk = await TestRoom.create(server, alice, [bob]);
      await talk.say(bob, 'ferret');
      assert.equal((await search(alice, 'ferret')).count, 1);
      const path = `/_matrix/client/v3/user/${alice.userId}/account_data/m.ignored_user_list`;
      const ignored_users = { [bob.userId]: {} };
      await server.api('PUT', path, { token: alice.token, body: { ignored_users } });
      assert.equal((await search(alice, 'ferret')).count, 0);
      await server.api('PUT', path, { token: alice.token, body: { ignored_users: {} } });
    });

    it('rejects malformed requests', async () => {
      assert.equal((await sendRequest(alice, {})).status, 400);
      assert.equal((await sendRequest(alice, { search_term: 'x', order_by: 'size' })).status, 400);
      assert.equal((await sendRequest(alice, { search_term: 'x', filter: { limit: 'many' } })).status, 400);
      for (const token of ['x', 'r1_x', `r1_${Buffer.from('{"before":"x"}').toString('base64url')}`]) {
        assert.equal(
          (await sendRequest(alice, { search_term: 'x' }, token)).body['errcode'],
          'M_INVALID_PARAM',
        );
      }
      const empty = await server.api('POST', '/_matrix/client/v3/search', {
        token: alice.token,
        body: { search_categories: {} },
      });
      assert.deepEqual(empty.body, { search_categories: {} });
    });

    it('finds events from before a restart', async () => {
      const talk = await TestRoom.create(server, alice);
      await talk.say(alice, 'capybara');
      await server.restart();
      assert.deepEqual(bodies(await search(alice, 'capybara')), ['capybara']);
      await talk.say(alice, 'another capybara');
      assert.equal((await search(alice, 'capybara')).count, 2);
    });
  });

  it('rejects searches when search is disabled [option: enable_search]', async () => {
    const server = await startTestServer({
      database: open.kind,
      config: { search: { enable_search: false } },
    });
    try {
      const { token } = await server.register('alice');
      const body = { search_categories: { room_events: { search_term: 'x' } } };
      const refused = await server.api('POST', '/_matrix/client/v3/search', { token, body });
      assert.deepEqual([refused.status, refused.body['errcode']], [400, 'M_UNKNOWN']);
    } finally {
      await server.stop();
    }
  });
});
