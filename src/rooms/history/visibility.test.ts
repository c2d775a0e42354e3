import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';

/** A membership change of ben. Anna sends message 0 before the first change, and message `i` after change `i`. */
type MembershipChange = 'invite' | 'join' | 'leave' | 'kick' | 'ban' | 'unban' | 'forget' | 'knock';

/**
 * For each history visibility, a row with a letter for each message, from message 0: after all changes ben may see it
 * (`y`) or not (`n`). A row that begins with `-` means that ben may not read the room's history, but may request the
 * messages marked `y` by their ids.
 */
const histories: [MembershipChange[], Record<'world_readable' | 'shared' | 'invited' | 'joined', string>][] =
  [
    [[], { world_readable: 'y', shared: '-n', invited: '-n', joined: '-n' }],
    [['invite'], { world_readable: 'yy', shared: '-nn', invited: '-ny', joined: '-nn' }],
    [['join'], { world_readable: 'yy', shared: 'yy', invited: 'ny', joined: 'ny' }],
    [['invite', 'join'], { world_readable: 'yyy', shared: 'yyy', invited: 'nyy', joined: 'nny' }],
    [['join', 'leave'], { world_readable: 'yyy', shared: 'yyn', invited: 'nyn', joined: 'nyn' }],
    [['join', 'kick'], { world_readable: 'yyy', shared: 'yyn', invited: 'nyn', joined: 'nyn' }],
    [['join', 'ban'], { world_readable: 'yyy', shared: 'yyn', invited: 'nyn', joined: 'nyn' }],
    [['join', 'ban', 'unban'], { world_readable: 'yyyy', shared: 'yynn', invited: 'nynn', joined: 'nynn' }],
    [['join', 'leave', 'join'], { world_readable: 'yyyy', shared: 'yyyy', invited: 'nyny', joined: 'nyny' }],
    [
      ['join', 'leave', 'invite'],
      { world_readable: 'yyyy', shared: 'yynn', invited: 'nyny', joined: 'nynn' },
    ],
    [['invite', 'leave'], { world_readable: 'yyy', shared: '-nnn', invited: '-nyn', joined: '-nnn' }],
    [['ban'], { world_readable: 'yy', shared: '-nn', invited: '-nn', joined: '-nn' }],
    [
      ['join', 'leave', 'forget'],
      { world_readable: 'yyyy', shared: '-nnnn', invited: '-nnnn', joined: '-nnnn' },
    ],
    [
      ['join', 'leave', 'forget', 'join'],
      { world_readable: 'yyyyy', shared: 'yyyyy', invited: 'nynny', joined: 'nynny' },
    ],
  ];

const changesByBen: readonly MembershipChange[] = ['join', 'leave', 'forget', 'knock'];

for (const database of selectedDatabases(import.meta.url)) {
  describe(`history visibility, on ${database}`, () => {
    let server: TestServer;
    let anna: TestClient;
    let ben: TestClient;
    before(async () => {
      server = await startTestServer({ database });
      [anna, ben] = [await TestClient.register(server, 'anna'), await TestClient.register(server, 'ben')];
    });
    after(() => server.stop());

    /**
     * Creates a room. Anna sends a message at the beginning, and after each change of ben's membership.
     * @returns the path and the id of the room, and the ids of the messages
     */
    async function createRoomWithHistory(visibility: string, changes: readonly MembershipChange[]) {
      const content = { history_visibility: visibility };
      const initial_state = [
        { type: 'm.room.history_visibility', content },
        { type: 'm.room.topic', content: { topic: 'earlier' } },
      ];
      const roomId = await anna.createRoom({ preset: 'public_chat', initial_state });
      const messageIds = [await anna.say(roomId, 'message 0')];
      for (const [index, change] of changes.entries()) {
        if (changesByBen.includes(change)) await ben.membership(change as 'join', roomId);
        else await anna.membership(change as 'kick', roomId, ben);
        messageIds.push(await anna.say(roomId, `message ${index + 1}`));
      }
      return { path: `/rooms/${enc(roomId)}`, roomId, messageIds };
    }

    /** Returns a row of the table: the messages in the response. */
    const rowOf = (raw: string, messageIds: readonly string[]) =>
      messageIds.map((_, index) => (raw.includes(`"message ${index}"`) ? 'y' : 'n')).join('');

    for (const [changes, rows] of histories) {
      for (const [visibility, row] of Object.entries(rows)) {
        const isClosed = row.startsWith('-');
        const seen = isClosed ? row.slice(1) : row;
        const outcome = isClosed
          ? `refuses ben the history with 403 and shows him the single messages ${seen}`
          : `shows ben the messages ${seen}`;
        const history = changes.join(', ') || 'no change of his membership';
        it(`${outcome} with the history visibility ${visibility} after ${history}`, async () => {
          const { path, roomId, messageIds } = await createRoomWithHistory(visibility, changes);
          for (const dir of ['b', 'f']) {
            const page = await ben.call('GET', `${path}/messages`, undefined, { dir, limit: 100 });
            assert.equal(page.status, isClosed ? 403 : 200, page.raw);
            assert.equal(rowOf(page.raw, messageIds), isClosed ? seen.replaceAll('y', 'n') : seen);
          }
          for (const [index, eventId] of messageIds.entries()) {
            const mayRead = seen[index] === 'y';
            const event = await ben.call('GET', `${path}/event/${enc(eventId)}`);
            assert.equal(event.status, mayRead ? 200 : 404, `message ${index}`);
            const context = await ben.call('GET', `${path}/context/${enc(eventId)}`, undefined, {
              limit: 100,
            });
            assert.equal(context.status, isClosed ? 403 : mayRead ? 200 : 404, `message ${index}`);
            if (mayRead && !isClosed) assert.equal(rowOf(context.raw, messageIds), seen);
          }
          const state = await ben.call('GET', `${path}/state/m.room.topic`);
          assert.equal(state.status === 403, isClosed, state.raw);
          const first = await ben.call('GET', '/sync', undefined, {
            filter: JSON.stringify({
              room: { rooms: [roomId], include_leave: true, timeline: { limit: 100 } },
            }),
          });
          const isMember = changes.at(-1) === 'join';
          const leaks = [...rowOf(first.raw, messageIds)].some(
            (letter, index) => letter === 'y' && (isClosed || seen[index] !== 'y'),
          );
          assert.equal(leaks, false, first.raw);
          if (isMember) assert.equal(rowOf(first.raw, messageIds), seen);
        });
      }
    }

    it('shows single events from a time when the room was world-readable to users who were never in the room', async () => {
      const { path, roomId, messageIds } = await createRoomWithHistory('world_readable', []);
      await anna.setState(roomId, 'm.room.history_visibility', { history_visibility: 'joined' });
      messageIds.push(await anna.say(roomId, 'later'));
      const statuses = await Promise.all(
        messageIds.map(async (id) => (await ben.call('GET', `${path}/event/${enc(id)}`)).status),
      );
      assert.deepEqual(statuses, [200, 404]);
      assert.equal((await ben.call('GET', `${path}/messages`)).status, 403);
    });

    it('shows the state, members and events at the time of the leave to users who have left', async () => {
      const { path, roomId } = await createRoomWithHistory('shared', ['join']);
      await anna.setState(roomId, 'm.room.topic', { topic: 'current' });
      const { next_batch: before } = await anna.sync();
      await ben.leave(roomId);
      const cleo = await TestClient.register(server, 'cleo');
      await cleo.join(roomId);
      await anna.setState(roomId, 'm.room.topic', { topic: 'later' });
      const { next_batch: later } = await anna.sync();
      assert.equal((await ben.do('GET', `${path}/state/m.room.topic`))['topic'], 'current');
      assert.doesNotMatch((await ben.call('GET', `${path}/state`)).raw, /later|cleo/);
      for (const at of [undefined, before, later]) {
        const query = at === undefined ? {} : { at };
        const { chunk } = (await ben.do('GET', `${path}/members`, undefined, query)) as {
          chunk: { state_key: string }[];
        };
        assert.deepEqual(chunk.map(({ state_key }) => state_key).sort(), [anna.id, ben.id]);
      }
      const leaveSection = (
        await ben.sync(undefined, { filter: { room: { include_leave: true, rooms: [roomId] } } })
      ).rooms?.leave;
      assert.doesNotMatch(JSON.stringify(leaveSection), /later|cleo/);
    });

    it('filters /members by at, membership and not_membership, and returns the members that membership or not_membership selects', async () => {
      const { path, roomId } = await createRoomWithHistory('shared', ['join']);
      const { next_batch: at } = await anna.sync();
      await anna.membership('ban', roomId, ben);
      const members = async (query: Record<string, string>) => {
        const { chunk } = await anna.do('GET', `${path}/members`, undefined, query);
        return (chunk as { state_key: string; content: { membership: string } }[])
          .map(({ state_key, content }) => `${state_key} ${content.membership}`)
          .sort();
      };
      assert.deepEqual(await members({}), ['@anna:test join', '@ben:test ban']);
      assert.deepEqual(await members({ membership: 'ban' }), ['@ben:test ban']);
      assert.deepEqual(await members({ not_membership: 'ban' }), ['@anna:test join']);
      assert.deepEqual(await members({ membership: 'ban', not_membership: 'join' }), ['@ben:test ban']);
      assert.deepEqual(await members({ membership: 'join', not_membership: 'ban' }), ['@anna:test join']);
      const all = ['@anna:test join', '@ben:test ban'];
      assert.deepEqual(await members({ membership: 'ban', not_membership: 'ban' }), all);
      assert.deepEqual(await members({ membership: 'leave', not_membership: 'leave' }), all);
      assert.deepEqual(await members({ at }), ['@anna:test join', '@ben:test join']);
      assert.equal((await anna.call('GET', `${path}/members`, undefined, { at: 'nonsense' })).status, 400);
    });

    it('pages /messages in both directions to the end, from tokens of /messages and /sync', async () => {
      const { path, roomId } = await createRoomWithHistory('shared', [
        'join',
        'leave',
        'join',
        'leave',
        'join',
      ]);
      const seen: Record<string, string[]> = { b: [], f: [] };
      for (const dir of ['b', 'f'] as const) {
        let from: string | undefined;
        for (let pages = 0; pages < 100; pages++) {
          const query = { dir, limit: 3, ...(from === undefined ? undefined : { from }) };
          const page = await anna.do('GET', `${path}/messages`, undefined, query);
          seen[dir]?.push(...(page['chunk'] as { event_id: string }[]).map(({ event_id }) => event_id));
          from = page['end'] as string | undefined;
          if (from === undefined) break;
        }
      }
      assert.deepEqual(seen['b'], seen['f']?.toReversed());
      assert.ok((seen['b']?.length ?? 0) > 15);
      const filter = { room: { rooms: [roomId], timeline: { limit: 2 } } };
      const sync = await anna.sync(undefined, { filter });
      const timeline = sync.rooms?.join?.[roomId]?.timeline;
      const tokensOf = async (query: Record<string, string>) => {
        const latest = { dir: 'b', limit: 2, ...query };
        const { start, end } = await anna.do('GET', `${path}/messages`, undefined, latest);
        return { start, end };
      };
      assert.deepEqual(
        await tokensOf({ from: '', to: '' }),
        await tokensOf({}),
        'empty tokens count as absent',
      );
      const emptyPage = await anna.do('GET', `${path}/messages`, undefined, { dir: 'b', limit: 0 });
      assert.deepEqual(
        [emptyPage['chunk'], emptyPage['end']],
        [[], emptyPage['start']],
        'with limit 0 the end is the start',
      );
      const before = { dir: 'b', limit: 100, from: String(timeline?.prev_batch) };
      const earlierPage = await anna.do('GET', `${path}/messages`, undefined, before);
      const ids = [
        ...(earlierPage['chunk'] as { event_id: string }[]).map(({ event_id }) => event_id).reverse(),
      ];
      assert.deepEqual([...ids, ...(timeline?.events.map(({ event_id }) => event_id) ?? [])], seen['f']);
      const between = { dir: 'f', from: String(timeline?.prev_batch), to: sync.next_batch, limit: 100 };
      await anna.say(roomId, 'after it');
      const page = await anna.do('GET', `${path}/messages`, undefined, between);
      assert.equal((page['chunk'] as unknown[]).length, 2);
      assert.deepEqual(
        [earlierPage['start'], page['start']],
        [before.from, between.from],
        'the start is the token of the request',
      );
    });

    it('returns an end token with every page that contains events, and no end token with an empty page at the end of the history', async () => {
      const { path, roomId } = await createRoomWithHistory('shared', ['join']);
      const forward = (client: TestClient, from?: unknown) =>
        client.do('GET', `${path}/messages`, undefined, {
          dir: 'f',
          limit: 100,
          ...(from ? { from: String(from) } : {}),
        });
      const bodies = (page: Awaited<ReturnType<typeof forward>>) =>
        (page['chunk'] as { content: { body?: string } }[]).map(({ content }) => content.body);
      const allMessages = await forward(ben);
      const pageAfterEnd = await forward(ben, allMessages['end']);
      assert.deepEqual([pageAfterEnd['chunk'], pageAfterEnd['end']], [[], undefined]);
      await anna.say(roomId, 'next');
      assert.deepEqual(bodies(await forward(ben, allMessages['end'])), ['next']);
      await anna.membership('kick', roomId, ben);
      const beforeLeaving = await forward(ben);
      const afterLeaving = await forward(ben, beforeLeaving['end']);
      assert.deepEqual([afterLeaving['chunk'], afterLeaving['end']], [[], undefined]);
      const backward = (from?: unknown) =>
        anna.do('GET', `${path}/messages`, undefined, {
          dir: 'b',
          limit: 100,
          ...(from ? { from: String(from) } : {}),
        });
      const pageBeforeStart = await backward((await backward())['end']);
      assert.deepEqual([pageBeforeStart['chunk'], pageBeforeStart['end']], [[], undefined]);
    });

    it("returns the senders' membership events from /messages and /context when members are lazy-loaded", async () => {
      const { path, roomId } = await createRoomWithHistory('shared', ['join']);
      const eventId = await ben.say(roomId, 'hello');
      const filter = JSON.stringify({ lazy_load_members: true });
      const members = (events: unknown) =>
        (events as { type: string; state_key: string }[])
          .filter(({ type }) => type === 'm.room.member')
          .map(({ state_key }) => state_key)
          .sort();
      const page = await anna.do('GET', `${path}/messages`, undefined, { dir: 'b', limit: 1, filter });
      assert.deepEqual(members(page['state']), [ben.id]);
      const context = await anna.do('GET', `${path}/context/${enc(eventId)}`, undefined, {
        limit: 3,
        filter,
      });
      assert.deepEqual(members(context['state']), [anna.id, ben.id]);
      const withLimit0 = await anna.do('GET', `${path}/context/${enc(eventId)}`, undefined, {
        limit: 0,
        filter,
      });
      assert.deepEqual(members(withLimit0['state']), [ben.id]);
      assert.deepEqual([withLimit0['events_before'], withLimit0['events_after']], [[], []]);
    });
  });
}
