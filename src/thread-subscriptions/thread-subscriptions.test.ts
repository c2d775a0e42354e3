import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { eventually } from '../../test/clients/eventually.ts';
import { skippableClock } from '../../test/support/clocks/skippable-clock.ts';
import { openContents } from '../../test/support/databases/database-contents.ts';
import { selectedDatabases } from '../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../test/support/servers/server.ts';
import { SlidingClient } from '../../test/support/users/sliding-client.ts';
import { enc, TestClient } from '../../test/support/users/test-client.ts';

const unstable = '/_matrix/client/unstable';
const extension = 'io.element.msc4308.thread_subscriptions';

/** Minimum milliseconds of a timer that ends a long poll: other timers of the server are shorter or longer. */
const minPoll = 200_000;

/** Maximum milliseconds of a timer that ends a long poll. */
const maxPoll = 220_000;

interface Changes {
  readonly subscribed?: Record<string, Record<string, { automatic: boolean; bump_stamp: number }>>;
  readonly unsubscribed?: Record<string, Record<string, { bump_stamp: number }>>;
  readonly prev_batch?: string;
  readonly end?: string;
}

/** Returns the roots of the threads in a response, one list for each section. */
const rootsOf = ({ subscribed = {}, unsubscribed = {} }: Changes) =>
  [subscribed, unsubscribed].map((rooms) => Object.values(rooms).flatMap((threads) => Object.keys(threads)));

for (const database of selectedDatabases(import.meta.url)) {
  describe(`thread subscriptions on ${database}`, () => {
    let server: TestServer;
    const clock = skippableClock();
    let count = 0;
    before(async () => {
      server = await startTestServer({ database, clock });
    });
    after(() => server.stop());

    /** Makes two users in a room with the root of a thread. */
    const room = async () => {
      const anna = await TestClient.register(server, `anna${count++}`);
      const ben = await TestClient.register(server, `ben${count++}`);
      const roomId = await anna.createRoom();
      await ben.join(roomId);
      return { anna, ben, roomId, root: await anna.say(roomId, 'root') };
    };
    const answerIn = (who: TestClient, roomId: string, root: string, body = 'answer') =>
      who.send(roomId, 'm.room.message', {
        msgtype: 'm.text',
        body,
        'm.relates_to': { rel_type: 'm.thread', event_id: root },
      });
    const call = (who: TestClient, method: string, roomId: string, root: string, body?: unknown) =>
      who.request(
        method,
        `${unstable}/io.element.msc4306/rooms/${enc(roomId)}/thread/${enc(root)}/subscription`,
        body,
      );
    const subscribe = async (who: TestClient, roomId: string, root: string, automatic?: string) => {
      const { status, body } = await call(who, 'PUT', roomId, root, { automatic });
      return [status, body['errcode']];
    };
    const state = async (who: TestClient, roomId: string, root: string) => {
      const { status, body } = await call(who, 'GET', roomId, root);
      return status === 200 ? body['automatic'] : body['errcode'];
    };
    const accepted = [200, undefined];
    const notFound = [404, 'M_NOT_FOUND'];

    it('stores manual and automatic subscriptions, and does not replace a manual one by an automatic one', async () => {
      const { anna, ben, roomId, root } = await room();
      const cause = await answerIn(ben, roomId, root);
      assert.equal(await state(anna, roomId, root), 'M_NOT_FOUND');
      assert.deepEqual(await subscribe(anna, roomId, root, cause), accepted);
      assert.equal(await state(anna, roomId, root), true);
      assert.deepEqual(await subscribe(anna, roomId, root), accepted);
      assert.equal(await state(anna, roomId, root), false);
      assert.deepEqual(await subscribe(anna, roomId, root, cause), accepted);
      assert.equal(await state(anna, roomId, root), false);
      assert.equal(await state(ben, roomId, root), 'M_NOT_FOUND', 'subscriptions belong to one user');
      for (let i = 0; i < 2; i++) assert.equal((await call(anna, 'DELETE', roomId, root)).status, 200);
      assert.equal(await state(anna, roomId, root), 'M_NOT_FOUND');
    });

    it('rejects with 409 an automatic subscription for an event from before the user unsubscribed', async () => {
      const { anna, ben, roomId, root } = await room();
      const [first, second] = [await answerIn(ben, roomId, root), await answerIn(ben, roomId, root)];
      await subscribe(anna, roomId, root, first);
      await call(anna, 'DELETE', roomId, root);
      const conflict = [409, 'IO.ELEMENT.MSC4306.M_CONFLICTING_UNSUBSCRIPTION'];
      for (const cause of [first, second])
        assert.deepEqual(await subscribe(anna, roomId, root, cause), conflict);
      assert.equal(await state(anna, roomId, root), 'M_NOT_FOUND');
      const third = await answerIn(ben, roomId, root);
      assert.deepEqual(await subscribe(anna, roomId, root, third), accepted);
      assert.equal(await state(anna, roomId, root), true);
    });

    it('rejects with 400 a subscription whose cause is outside of the thread, and with 404 a thread that the user cannot see', async () => {
      const { anna, ben, roomId, root } = await room();
      const elsewhere = await room();
      const outside = [400, 'IO.ELEMENT.MSC4306.M_NOT_IN_THREAD'];
      const other = await ben.say(roomId, 'not in the thread');
      const foreign = await answerIn(elsewhere.ben, elsewhere.roomId, elsewhere.root);
      for (const cause of [root, other, foreign, '$nothing']) {
        assert.deepEqual(await subscribe(anna, roomId, root, cause), outside, cause);
      }
      assert.deepEqual(await subscribe(anna, roomId, 'x'), [400, 'M_INVALID_PARAM']);
      for (const [who, room, thread] of [
        [anna, roomId, '$nothing'],
        [anna, roomId, elsewhere.root],
        [elsewhere.anna, elsewhere.roomId, root],
        [anna, '!nowhere:test', root],
      ] as const) {
        assert.deepEqual(await subscribe(who, room, thread), notFound);
        assert.equal(await state(who, room, thread), 'M_NOT_FOUND');
        assert.equal((await call(who, 'DELETE', room, thread)).status, 404);
      }
      const secret = await anna.createRoom({});
      assert.deepEqual(await subscribe(ben, secret, await anna.say(secret, 'x')), notFound);
      assert.equal((await call(anna, 'PUT', roomId, root, { automatic: true })).status, 400);
    });

    it('sends thread subscriptions by sliding sync, the newest first, and page by page', async () => {
      const { anna, roomId, root } = await room();
      const more = [await anna.say(roomId, '2'), await anna.say(roomId, '3'), await anna.say(roomId, '4')];
      const roots = [root, ...more];
      for (const thread of roots) await subscribe(anna, roomId, thread);
      const client = new SlidingClient(anna);
      const syncExtension = async () => {
        const body = { extensions: { [extension]: { enabled: true, limit: 2 } } };
        return ((await client.sync(body)).extensions[extension] ?? {}) as Changes;
      };
      const first = await syncExtension();
      assert.deepEqual(rootsOf(first), [roots.slice(2).toReversed(), []]);
      const { bump_stamp, automatic } = first.subscribed![roomId]![more[2]!]!;
      assert.deepEqual([typeof bump_stamp, automatic], ['number', false]);
      const page = async (query: Record<string, string | number>) => {
        const path = `${unstable}/io.element.msc4308/thread_subscriptions`;
        const { status, body } = await anna.request('GET', path, undefined, { dir: 'b', ...query });
        return status === 200 ? (body as Changes) : status;
      };
      const from = first.prev_batch!;
      const second = (await page({ from, limit: 1 })) as Changes;
      assert.deepEqual(rootsOf(second), [[roots[1]], []]);
      const third = (await page({ from: second.end!, limit: 1 })) as Changes;
      assert.deepEqual([rootsOf(third), third.end], [[[root], []], undefined]);
      assert.deepEqual(await syncExtension(), {});
      const pos = client.pos!;
      await call(anna, 'DELETE', roomId, root);
      assert.deepEqual(rootsOf((await page({ to: pos })) as Changes), [[], [root]]);
      assert.deepEqual(rootsOf(await syncExtension()), [[], [root]]);
      assert.deepEqual(await page({ to: client.pos! }), {});
      for (const wrong of [{ from: 'x' }, { to: 'x' }, { limit: 0 }, { dir: 'f' }]) {
        assert.equal(await page(wrong), 400, JSON.stringify(wrong));
      }
      await server.restart();
      assert.equal(rootsOf((await page({})) as Changes).flat().length, 4, 'after a restart');
    });

    it('wakes a waiting sliding sync when a subscription changes', async () => {
      const { anna, roomId, root } = await room();
      const client = new SlidingClient(anna);
      const body = { extensions: { [extension]: { enabled: true } } };
      await client.sync(body);
      const waiting = client.sync(body, { timeout: maxPoll });
      await clock.untilTimerRuns([minPoll, maxPoll]);
      await subscribe(anna, roomId, root);
      assert.deepEqual(rootsOf((await waiting).extensions[extension] as Changes), [[root], []]);
    });

    it('notifies of subscribed threads in a muted room, and of other threads only by mentions when the rule unsubscribed_thread is enabled', async () => {
      const { anna, ben, roomId, root } = await room();
      const other = await ben.say(roomId, 'another thread');
      await subscribe(anna, roomId, root);
      await anna.do('PUT', `/pushrules/global/room/${enc(roomId)}`, { actions: [] });
      const unread = async () => {
        const sync = await anna.sync(undefined, {
          filter: { room: { timeline: { unread_thread_notifications: true } } },
        });
        const room = sync.rooms?.join?.[roomId] as unknown as {
          unread_thread_notifications?: Record<string, { notification_count: number }>;
        };
        const threads = room.unread_thread_notifications ?? {};
        return [root, other].map((thread) => threads[thread]?.notification_count ?? 0);
      };
      for (const thread of [root, other]) await answerIn(ben, roomId, thread);
      assert.deepEqual(await unread(), [1, 0]);
      await anna.do('DELETE', `/pushrules/global/room/${enc(roomId)}`);
      for (const thread of [root, other]) await answerIn(ben, roomId, thread);
      assert.deepEqual(await unread(), [2, 2], 'unread events follow changed rules');
      const rule = '/pushrules/global/postcontent/.io.element.msc4306.rule.unsubscribed_thread/enabled';
      assert.deepEqual(await anna.do('GET', rule), { enabled: false });
      await anna.do('PUT', rule, { enabled: true });
      await answerIn(ben, roomId, other);
      assert.deepEqual(await unread(), [2, 0]);
      await answerIn(ben, roomId, other, 'hello');
      const mention = {
        msgtype: 'm.text',
        body: 'anna?',
        'm.mentions': { user_ids: [anna.id] },
        'm.relates_to': { rel_type: 'm.thread', event_id: other },
      };
      await ben.send(roomId, 'm.room.message', mention);
      assert.deepEqual(await unread(), [2, 1], 'mentions always notify');
    });

    it('deletes the subscriptions of a user whose account is erased', async () => {
      const { anna, ben, roomId, root } = await room();
      for (const user of [anna, ben]) assert.deepEqual(await subscribe(user, roomId, root), accepted);
      const auth = {
        type: 'm.login.password',
        identifier: { type: 'm.id.user', user: ben.id },
        password: 'correct horse',
      };
      assert.equal((await ben.call('POST', '/account/deactivate', { auth, erase: true })).status, 200);
      const contents = await openContents(server.databaseOptions);
      const subscribers = async () =>
        (await contents.rows('thread_subscriptions'))
          .filter(({ room_id }) => room_id === roomId)
          .map(({ user_id }) => user_id);
      try {
        await eventually('the subscriptions of ben to be deleted', async () =>
          isDeepStrictEqual(await subscribers(), [anna.id]),
        );
      } finally {
        await contents.close();
      }
    });
  });
}
