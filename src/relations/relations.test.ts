import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { nextMillisecond } from '../../test/support/clocks/next-millisecond.ts';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { startTestServer, type TestServer, type TestUser } from '../../test/support/servers/server.ts';
import { chunkOf, idsOf, type SeenEvent, TestRoom } from '../../test/support/users/test-room.ts';
import { openDatabase } from '../kernel/database/index.ts';
import { silentLogger } from '../kernel/observability/index.ts';

const relationsOf = ({ unsigned }: SeenEvent) => unsigned?.['m.relations'] ?? {};

interface Bundle {
  'm.replace'?: SeenEvent;
  'm.thread'?: { latest_event: SeenEvent; count: number; current_user_participated: boolean };
  'm.reference'?: { chunk: { event_id: string }[] };
}

const bundleOf = (event: SeenEvent | undefined) => (event ? relationsOf(event) : {}) as Bundle;

forSelectedDatabases(import.meta.url, (open) => {
  describe('relations between events', () => {
    let server: TestServer;
    let alice: TestUser;
    let bob: TestUser;
    let carol: TestUser;
    before(async () => {
      server = await startTestServer({ database: open.kind });
      [alice, bob, carol] = [
        await server.register('alice'),
        await server.register('bob'),
        await server.register('carol'),
      ];
    });
    after(() => server.stop());

    const relations = (talk: TestRoom, user: TestUser, eventId: string, path = '', query = {}) =>
      talk.call(user, 'GET', `/relations/${encodeURIComponent(eventId)}${path}`, { query, version: 'v1' });

    const sync = async (user: TestUser, talk: TestRoom, query: Record<string, string> = {}) => {
      const answer = await server.api('GET', '/_matrix/client/v3/sync', { token: user.token, query });
      const { join } = answer.body['rooms'] as {
        join: Record<string, { timeline: { events: SeenEvent[] } }>;
      };
      return { events: join[talk.roomId]!.timeline.events, since: String(answer.body['next_batch']) };
    };

    const ignore = (user: TestUser, others: TestUser[]) =>
      server.api('PUT', `/_matrix/client/v3/user/${user.userId}/account_data/m.ignored_user_list`, {
        token: user.token,
        body: { ignored_users: Object.fromEntries(others.map(({ userId }) => [userId, {}])) },
      });

    it('bundles at most 1,000 children on a page when members may not see the whole history', async () => {
      const visibility = { history_visibility: 'joined' };
      const talk = await TestRoom.create(server, alice, [], {
        initial_state: [{ type: 'm.room.history_visibility', state_key: '', content: visibility }],
      });
      const parents: string[] = [];
      for (let parent = 0; parent < 3; parent++) parents.push(await talk.say(alice, `parent ${parent}`));
      for (const eventId of parents) {
        const content = { 'm.relates_to': { rel_type: 'm.reference', event_id: eventId } };
        for (let child = 0; child < 400; child++) await talk.send(alice, 'org.example.child', content);
      }
      const page = chunkOf(await talk.call(alice, 'GET', '/messages', { query: { dir: 'f', limit: 20 } }));
      const counts = page
        .filter(({ event_id }) => parents.includes(event_id))
        .map((event) => bundleOf(event)['m.reference']?.chunk.length);
      assert.deepEqual(counts, [400, 400, 200]);
    });

    describe('edited events', () => {
      it('bundles an edit with the original event in the responses of /event, /sync, /messages and /context', async () => {
        const talk = await TestRoom.create(server, alice, [bob]);
        const original = await talk.say(alice, 'hullo');
        const { since } = await sync(bob, talk);
        const edit = await talk.edit(alice, original, 'hello');
        const find = (events: SeenEvent[]) => events.find(({ event_id }) => event_id === original);
        const path = `/context/${encodeURIComponent(original)}`;
        const context = (await talk.call(bob, 'GET', path)).body as { event: SeenEvent };
        const seen = [
          await talk.event(alice, original),
          await talk.event(bob, original),
          find((await sync(bob, talk)).events),
          find((await sync(alice, talk)).events),
          find(chunkOf(await talk.call(bob, 'GET', '/messages', { query: { dir: 'b' } }))),
          context.event,
        ];
        for (const event of seen) {
          assert.equal(bundleOf(event)['m.replace']?.event_id, edit);
          assert.equal(event?.content['body'], 'hullo');
        }
        assert.deepEqual(
          (await sync(bob, talk, { since })).events.map(({ event_id }) => event_id),
          [edit],
        );
      });

      it('uses the latest edit by the same sender that is not redacted', async () => {
        const talk = await TestRoom.create(server, alice, [bob]);
        const original = await talk.say(alice, 'one');
        const replacement = async () => bundleOf(await talk.event(bob, original))['m.replace']?.event_id;
        await talk.edit(bob, original, 'not mine');
        assert.equal(await replacement(), undefined);
        const first = await talk.edit(alice, original, 'two');
        // Of two edits with the same timestamp, the one with the greater event id is the latest.
        await nextMillisecond();
        const second = await talk.edit(alice, original, 'three');
        await talk.relate(alice, 'm.replace', original, 'without new content');
        assert.equal(await replacement(), second);
        await talk.redact(alice, second);
        assert.equal(await replacement(), first);
        await talk.redact(alice, original);
        assert.equal(await replacement(), undefined);
      });

      it('bundles the edit of an event after a restart', async () => {
        const talk = await TestRoom.create(server, alice);
        const original = await talk.say(alice, 'one');
        const edit = await talk.edit(alice, original, 'two');
        await server.restart();
        assert.equal(bundleOf(await talk.event(alice, original))['m.replace']?.event_id, edit);
      });
    });

    describe('threads of a room', () => {
      it('bundles a summary of a thread with its root; the summary contains the edit of the latest reply', async () => {
        const talk = await TestRoom.create(server, alice, [bob, carol]);
        const root = await talk.say(alice, 'root');
        await talk.relate(bob, 'm.thread', root, 'one');
        const last = await talk.relate(bob, 'm.thread', root, 'two');
        const edit = await talk.edit(bob, last, 'three');
        const thread = async (user: TestUser) => bundleOf(await talk.event(user, root))['m.thread'];
        const seen = await thread(carol);
        assert.equal(seen?.count, 2);
        assert.equal(seen?.current_user_participated, false);
        assert.equal(seen?.latest_event.event_id, last);
        assert.equal(bundleOf(seen?.latest_event)['m.replace']?.event_id, edit);
        assert.equal((await thread(alice))?.current_user_participated, true);
        assert.equal((await thread(bob))?.current_user_participated, true);
        await talk.redact(bob, last);
        assert.equal((await thread(bob))?.count, 1);
      });

      it('counts all replies of a thread that has more replies than the server reads', async () => {
        const talk = await TestRoom.create(server, alice, [bob, carol]);
        const root = await talk.say(alice, 'a long thread');
        const last = await talk.relate(bob, 'm.thread', root, 'the last');
        const database = await openDatabase(server.databaseOptions, { log: silentLogger });
        try {
          // Copies the row of the last reply 10,000 times, with older positions.
          const copies = `with recursive numbers(n) as (
              select cast(? as bigint) union all select n + 1 from numbers where n < cast(? as bigint)
            )
            insert into event_relations (child_nid, room_nid, parent_id, rel_type, type, sender, ts, depth, stream)
            select 1000000000 + n, room_nid, parent_id, rel_type, type, case when n < 2 then ? else sender end, ts, 0, n
            from event_relations, numbers where parent_id = ?`;
          await database.batch([{ sql: copies, rows: [[1, 10_000, carol.userId, root]] }]);
        } finally {
          await database.close();
        }
        await server.restart();
        const thread = async (user: TestUser) => bundleOf(await talk.event(user, root))['m.thread'];
        const threadForAlice = await thread(alice);
        assert.deepEqual([threadForAlice?.count, threadForAlice?.latest_event.event_id], [10_001, last]);
        const threadForCarol = await thread(carol);
        assert.deepEqual([threadForCarol?.count, threadForCarol?.current_user_participated], [10_001, true]);
        await ignore(alice, [carol]);
        assert.equal((await thread(alice))?.count, 10_000);
        await ignore(alice, []);
      });

      it('rejects a thread reply whose thread root itself relates to another event', async () => {
        const talk = await TestRoom.create(server, alice);
        const root = await talk.say(alice, 'root');
        const reply = await talk.relate(alice, 'm.thread', root);
        const content = { body: 'no', 'm.relates_to': { rel_type: 'm.thread', event_id: reply } };
        const refused = await talk.trySend(alice, 'm.room.message', content);
        assert.deepEqual([refused.status, refused.body['errcode']], [400, 'M_UNKNOWN']);
      });

      it('answers M_FORBIDDEN to replies of users who are not in the room, whether or not the thread root is a reply itself', async () => {
        const talk = await TestRoom.create(server, alice);
        const root = await talk.say(alice, 'root');
        const reply = await talk.relate(alice, 'm.thread', root);
        for (const event_id of [root, reply]) {
          const content = { body: 'no', 'm.relates_to': { rel_type: 'm.thread', event_id } };
          const refused = await talk.trySend(bob, 'm.room.message', content);
          assert.deepEqual([refused.status, refused.body['errcode']], [403, 'M_FORBIDDEN']);
        }
      });

      it('lists all threads, or only the threads that the user participated in, the latest reply first', async () => {
        const talk = await TestRoom.create(server, alice, [bob, carol]);
        const roots = [];
        for (const name of ['1', '2', '3']) roots.push(await talk.say(alice, name));
        const [first, second, third] = roots as [string, string, string];
        await talk.relate(bob, 'm.thread', first);
        await talk.relate(carol, 'm.thread', second);
        const onlyReply = await talk.relate(bob, 'm.thread', third);
        await talk.relate(carol, 'm.thread', first);
        const threads = (user: TestUser, query = {}) =>
          talk.call(user, 'GET', '/threads', { query, version: 'v1' });
        assert.deepEqual(idsOf(await threads(alice)), [first, third, second]);
        assert.deepEqual(idsOf(await threads(bob, { include: 'participated' })), [first, third]);
        const page = await threads(bob, { limit: 2 });
        assert.deepEqual(idsOf(page), [first, third]);
        const nextPage = await threads(bob, { limit: 2, from: page.body['next_batch'] });
        assert.deepEqual(idsOf(nextPage), [second]);
        assert.equal(nextPage.body['next_batch'], undefined);
        assert.equal(bundleOf(chunkOf(page)[0])['m.thread']?.count, 2);
        await talk.redact(bob, onlyReply);
        assert.deepEqual(idsOf(await threads(alice)), [first, second]);
        assert.equal((await threads(alice, { from: 'nonsense' })).status, 400);
        assert.equal((await threads(alice, { limit: 0 })).status, 400);
        const stranger = await server.register(`stranger${roots.length}`);
        assert.equal((await threads(stranger)).status, 403);
      });
    });

    describe('GET /relations', () => {
      it('lists children by relation type and event type, in both directions, in pages', async () => {
        const talk = await TestRoom.create(server, alice, [bob]);
        const parent = await talk.say(alice, 'parent');
        const reference = await talk.relate(bob, 'm.reference', parent);
        const reaction = await talk.react(bob, parent, '👍');
        const edit = await talk.edit(alice, parent, 'edited');
        const allChildren = [edit, reaction, reference];
        assert.deepEqual(idsOf(await relations(talk, bob, parent)), allChildren);
        assert.deepEqual(
          idsOf(await relations(talk, bob, parent, '', { dir: 'f' })),
          allChildren.toReversed(),
        );
        assert.deepEqual(idsOf(await relations(talk, bob, parent, '/m.annotation')), [reaction]);
        assert.deepEqual(idsOf(await relations(talk, bob, parent, '/m.annotation/m.reaction')), [reaction]);
        assert.deepEqual(idsOf(await relations(talk, bob, parent, '/m.annotation/m.other')), []);
        for (const [dir, order] of [
          ['b', allChildren],
          ['f', allChildren.toReversed()],
        ] as const) {
          const first = await relations(talk, bob, parent, '', { dir, limit: 2 });
          assert.deepEqual(idsOf(first), order.slice(0, 2));
          const from = first.body['next_batch'];
          const second = await relations(talk, bob, parent, '', { dir, limit: 2, from });
          assert.deepEqual(idsOf(second), order.slice(2));
          assert.equal(second.body['next_batch'], undefined);
          assert.equal(second.body['prev_batch'], from);
          const upTo = await relations(talk, bob, parent, '', { dir, to: from });
          assert.deepEqual(idsOf(upTo), order.slice(0, 2));
        }
        assert.deepEqual(bundleOf(await talk.event(bob, parent))['m.reference'], {
          chunk: [{ event_id: reference }],
        });
        assert.equal((await relations(talk, bob, parent, '', { limit: 0 })).status, 400);
        assert.equal((await relations(talk, bob, parent, '', { from: 'x' })).status, 400);
      });

      it('lists descendants with recurse', async () => {
        const talk = await TestRoom.create(server, alice);
        const root = await talk.say(alice, 'root');
        const reply = await talk.relate(alice, 'm.thread', root);
        const edit = await talk.edit(alice, reply, 'edited');
        const reaction = await talk.react(alice, edit, '👍');
        const tooDeep = await talk.relate(alice, 'm.reference', reaction);
        const deep = await relations(talk, alice, root, '', { recurse: true });
        assert.deepEqual(idsOf(deep), [reaction, edit, reply]);
        assert.equal(deep.body['recursion_depth'], 3);
        const withUnstableName = await relations(talk, alice, root, '', {
          'org.matrix.msc3981.recurse': true,
        });
        assert.deepEqual(idsOf(withUnstableName), idsOf(deep));
        assert.ok(!idsOf(deep).includes(tooDeep));
        const flat = await relations(talk, alice, root);
        assert.deepEqual(idsOf(flat), [reply]);
        assert.equal(flat.body['recursion_depth'], undefined);
        const filtered = await relations(talk, alice, root, '/m.thread', { recurse: true });
        assert.deepEqual(idsOf(filtered), [reply]);
        const reactions = await relations(talk, alice, root, '/m.annotation/m.reaction', { recurse: true });
        assert.deepEqual(idsOf(reactions), [reaction], 'reached by relations of other types');
        const emptyTokens = await relations(talk, alice, root, '', { from: '', to: '' });
        assert.deepEqual(idsOf(emptyTokens), [reply]);
      });

      it('leaves the edits of a redacted event out, and lists its other relations', async () => {
        const talk = await TestRoom.create(server, alice);
        const root = await talk.say(alice, 'root');
        const reply = await talk.relate(alice, 'm.thread', root);
        await talk.edit(alice, root, 'edited');
        await talk.redact(alice, root);
        assert.deepEqual(idsOf(await relations(talk, alice, root)), [reply]);
        assert.deepEqual(idsOf(await relations(talk, alice, root, '/m.replace')), []);
      });

      it('filters GET /messages and /sync by the relation types and the senders of related events', async () => {
        const talk = await TestRoom.create(server, alice, [bob]);
        const [one, two] = [await talk.say(alice, 'one'), await talk.say(alice, 'two')];
        await talk.relate(bob, 'm.thread', one);
        await talk.react(bob, two, '👍');
        const messages = async (filter: object) =>
          idsOf(
            await talk.call(bob, 'GET', '/messages', {
              query: { dir: 'b', limit: 50, filter: JSON.stringify(filter) },
            }),
          );
        assert.deepEqual(await messages({ related_by_rel_types: ['m.thread'] }), [one]);
        assert.deepEqual(await messages({ related_by_senders: [bob.userId] }), [two, one]);
        assert.deepEqual(await messages({ related_by_senders: [alice.userId] }), []);
        const filter = JSON.stringify({ room: { timeline: { related_by_rel_types: ['m.annotation'] } } });
        const { events } = await sync(bob, talk, { filter });
        assert.deepEqual(
          events.map(({ event_id }) => event_id),
          [two],
        );
      });

      it('accepts only one of several concurrent equal annotations', async () => {
        const talk = await TestRoom.create(server, alice, [bob]);
        const message = await talk.say(alice, 'hello');
        const reaction = { 'm.relates_to': { rel_type: 'm.annotation', event_id: message, key: '👍' } };
        const answers = await Promise.all([1, 2, 3].map(() => talk.trySend(bob, 'm.reaction', reaction)));
        assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400, 400]);
        const path = `/relations/${encodeURIComponent(message)}`;
        const listed = idsOf(await talk.call(alice, 'GET', path, { version: 'v1' }));
        assert.equal(listed.length, 1);
        await talk.redact(bob, listed[0]!);
        assert.equal((await talk.trySend(bob, 'm.reaction', reaction)).status, 200);
      });

      it('rejects a second equal annotation with M_DUPLICATE_ANNOTATION', async () => {
        const talk = await TestRoom.create(server, alice, [bob]);
        const parent = await talk.say(alice, 'parent');
        const reaction = await talk.react(bob, parent, '👍');
        const sameReaction = { 'm.relates_to': { rel_type: 'm.annotation', event_id: parent, key: '👍' } };
        const refused = await talk.trySend(bob, 'm.reaction', sameReaction);
        assert.deepEqual([refused.status, refused.body['errcode']], [400, 'M_DUPLICATE_ANNOTATION']);
        await talk.react(alice, parent, '👍');
        await talk.redact(bob, reaction);
        await talk.react(bob, parent, '👍');
      });
    });

    describe('visibility of relations', () => {
      it('neither lists nor counts related events that were sent before the user joined', async () => {
        const talk = await TestRoom.create(server, alice);
        const open = await talk.say(alice, 'shared root');
        await talk.setState(alice, 'm.room.history_visibility', { history_visibility: 'joined' });
        const hidden = await talk.say(alice, 'hidden root');
        const hiddenReply = await talk.relate(alice, 'm.thread', open);
        await talk.relate(alice, 'm.reference', open);
        await talk.edit(alice, open, 'hidden edit');
        await talk.join(bob);
        assert.deepEqual(relationsOf(await talk.event(bob, open)), {});
        assert.deepEqual(idsOf(await relations(talk, bob, open)), []);
        assert.equal((await relations(talk, bob, hidden)).status, 404);
        const threads = () => talk.call(bob, 'GET', '/threads', { version: 'v1' });
        assert.deepEqual(idsOf(await threads()), []);
        const reply = await talk.relate(alice, 'm.thread', open);
        assert.equal(bundleOf(await talk.event(bob, open))['m.thread']?.count, 1);
        assert.equal(bundleOf(await talk.event(alice, open))['m.thread']?.count, 2);
        assert.deepEqual(idsOf(await relations(talk, bob, open)), [reply]);
        assert.ok(idsOf(await relations(talk, alice, open)).includes(hiddenReply));
        const filter = JSON.stringify({ related_by_rel_types: ['m.replace'] });
        const query = { dir: 'b', limit: 50, filter };
        assert.deepEqual(idsOf(await talk.call(bob, 'GET', '/messages', { query })), []);
        assert.deepEqual(idsOf(await talk.call(alice, 'GET', '/messages', { query })), [open]);
      });

      it('neither lists nor counts related events that were sent after the user left, and answers 404 to users who never joined', async () => {
        const talk = await TestRoom.create(server, alice, [bob]);
        const root = await talk.say(alice, 'root');
        await talk.relate(alice, 'm.thread', root);
        await talk.leave(bob);
        const late = await talk.relate(alice, 'm.thread', root);
        assert.equal(bundleOf(await talk.event(bob, root))['m.thread']?.count, 1);
        assert.ok(!idsOf(await relations(talk, bob, root)).includes(late));
        assert.equal((await relations(talk, carol, root)).status, 404);
      });

      it('neither lists nor counts related events of ignored users, and lists a thread that an ignored user began without the content of the root', async () => {
        const talk = await TestRoom.create(server, alice, [bob, carol]);
        const root = await talk.say(bob, 'root');
        const reply = await talk.relate(alice, 'm.thread', root);
        await talk.relate(carol, 'm.thread', root);
        await talk.relate(carol, 'm.reference', root);
        await ignore(alice, [carol]);
        const bundle = bundleOf(await talk.event(alice, root));
        assert.equal(bundle['m.thread']?.count, 1);
        assert.equal(bundle['m.thread']?.latest_event.event_id, reply);
        assert.equal(bundle['m.reference'], undefined);
        assert.deepEqual(idsOf(await relations(talk, alice, root)), [reply]);
        await ignore(alice, [bob]);
        const [listed] = chunkOf(await talk.call(alice, 'GET', '/threads', { version: 'v1' }));
        assert.equal(listed?.event_id, root);
        assert.deepEqual(listed?.content, {});
        await ignore(alice, []);
      });

      it('does not bundle relations across rooms', async () => {
        const talk = await TestRoom.create(server, alice);
        const otherRoom = await TestRoom.create(server, bob);
        const root = await talk.say(alice, 'root');
        await otherRoom.relate(bob, 'm.thread', root);
        await otherRoom.relate(bob, 'm.reference', root);
        assert.deepEqual(relationsOf(await talk.event(alice, root)), {});
        assert.deepEqual(idsOf(await relations(talk, alice, root)), []);
        assert.deepEqual(idsOf(await talk.call(alice, 'GET', '/threads', { version: 'v1' })), []);
      });
    });
  });
});
