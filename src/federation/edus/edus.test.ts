import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { forEachDatabase } from '../../../test/support/databases.ts';
import { alice, bob, carol, RoomsUnderTest } from '../../../test/support/rooms.ts';
import {
  DatabaseClosed,
  DatabaseError,
  DatabaseOverloaded,
  TransactionTimeout,
} from '../../kernel/database/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { RateLimiter } from '../../kernel/rate-limits/index.ts';
import { Presence, presenceMigrations } from '../../presence/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { Receipts, receiptMigrations } from '../../receipts/index.ts';
import { Typing } from '../../typing/index.ts';
import type { EphemeralEdu } from '../sender/pending-edus.ts';
import { EduHandlers } from './edu-handlers.ts';
import { EduRates } from './edu-rates.ts';
import { presenceHandler } from './presence-edus.ts';
import { receiptHandler } from './receipt-edus.ts';
import { TellPresence } from './tell-presence.ts';
import { combine, TellReceipts } from './tell-receipts.ts';
import { TellTyping } from './tell-typing.ts';
import { typingHandler } from './typing-edus.ts';

const far = 'far.example';
const dora = `@dora:${far}`;
const eve = '@eve:evil.example';

/** Lets what was begun come to its end. */
async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise(setImmediate);
}

forEachDatabase((open) => {
  async function start({ enabled = true as boolean | 'untracked', transactionsPerSecond = 50 } = {}) {
    const under = await RoomsUnderTest.open(open, [...receiptMigrations, ...presenceMigrations]);
    const { engine, streams, clock, database } = under;
    const typing = new Typing({ streams, clock, roomStream: engine.stream });
    const markers = { find: async () => undefined, set: async () => undefined };
    const receipts = new Receipts({ database, streams, clock, engine, markers });
    const limiter = new RateLimiter({ per_second: 1e6, burst_count: 1e6 }, clock);
    const presence = new Presence({ database, streams, clock, engine, limiter, log: silentLogger }, enabled);
    const edus = new EduHandlers(silentLogger);
    const shared = { ...under.rooms, engine, typing, receipts, presence, clock, rates: new EduRates(clock) };
    edus.register('m.typing', typingHandler(shared));
    edus.register('m.receipt', receiptHandler(shared));
    edus.register('m.presence', presenceHandler(shared));
    const sent: { to: string[]; edu: EphemeralEdu; lazy: boolean }[] = [];
    const sender = {
      sendEdu: (to: Iterable<string>, edu: EphemeralEdu, { lazy = false } = {}) => {
        const others = [...to].filter((server) => server !== 'test');
        if (others.length > 0) sent.push({ to: others, edu, lazy });
      },
    };
    const telling = { ...shared, serverName: 'test', sender, log: silentLogger, transactionsPerSecond };
    const tellers = [new TellTyping(telling), new TellReceipts(telling)];
    new TellPresence(telling);
    const roomId = await under.room(alice, bob, dora, eve);
    const take = (origin: string, type: string, content: unknown) =>
      edus.dispatch(origin, [{ edu_type: type, content: content as JsonObject }]);
    return { under, clock, typing, receipts, presence, edus, take, sent, roomId, tellers };
  }

  const receiptOf = async (receipts: Receipts, roomId: string) =>
    (await receipts.contentsAll(roomId, alice)).flatMap((content) =>
      Object.entries(content).flatMap(([eventId, types]) =>
        Object.entries(types).flatMap(([type, users]) =>
          Object.entries(users).map(([userId, { ts, thread_id }]) => ({
            eventId,
            type,
            userId,
            ts,
            thread_id,
          })),
        ),
      ),
    );

  describe('EDUs of other servers', () => {
    it('say who types, of users of that server who are in the room', async () => {
      const { take, typing, roomId, clock } = await start();
      const types = (userId: string, origin = far, room = roomId, is: unknown = true) =>
        take(origin, 'm.typing', { room_id: room, user_id: userId, typing: is });
      await types(dora);
      await types(dora, 'evil.example');
      await types(alice);
      await types(eve);
      await types(`@stranger:${far}`);
      await types(dora, far, '!elsewhere:test');
      assert.deepEqual(typing.inRoom(roomId), [dora]);
      await types(dora, far, roomId, 'no');
      clock.advance(59_000);
      assert.deepEqual(typing.inRoom(roomId), [dora]);
      await types(dora, far, roomId, false);
      assert.deepEqual(typing.inRoom(roomId), []);
    });

    it('are ignored where the room does not admit their server', async () => {
      const { under, take, typing, receipts, roomId } = await start();
      const eventId = await under.say(alice, roomId, 'hello');
      const acl = { allow: ['*'], deny: [far] };
      const state = { type: 'm.room.server_acl', stateKey: '' };
      await under.rooms.sending.state({ userId: alice, deviceId: 'D' }, roomId, state, acl);
      await take(far, 'm.typing', { room_id: roomId, user_id: dora, typing: true });
      await take(far, 'm.receipt', {
        [roomId]: { 'm.read': { [dora]: { data: {}, event_ids: [eventId] } } },
      });
      assert.deepEqual([typing.inRoom(roomId), await receiptOf(receipts, roomId)], [[], []]);
      await take('evil.example', 'm.typing', { room_id: roomId, user_id: eve, typing: true });
      assert.deepEqual(typing.inRoom(roomId), [eve]);
    });

    it('say what their users have read', async () => {
      const { under, take, receipts, roomId, clock } = await start();
      const [first, second] = [await under.say(alice, roomId, '1'), await under.say(alice, roomId, '2')];
      const other = await under.say(alice, await under.room(alice), 'elsewhere');
      const read = (userId: string, ids: unknown, data: unknown = { ts: 5 }, type = 'm.read', origin = far) =>
        take(origin, 'm.receipt', { [roomId]: { [type]: { [userId]: { data, event_ids: ids } } } });
      await read(dora, [second, first]);
      await read(dora, [first]);
      await read(dora, [first], { ts: 6, thread_id: 'main' });
      await read(alice, [first]);
      await read(eve, [first]);
      await read(`@stranger:${far}`, [first]);
      await read(dora, [second], {}, 'm.read.private');
      await read(dora, [other]);
      await read(dora, 'none');
      await read(dora, [second], { thread_id: 5 });
      assert.deepEqual(
        (await receiptOf(receipts, roomId)).toSorted((x, y) => x.ts - y.ts),
        [
          { eventId: second, type: 'm.read', userId: dora, ts: 5, thread_id: undefined },
          { eventId: first, type: 'm.read', userId: dora, ts: 6, thread_id: 'main' },
        ],
      );
      await read(dora, [second], { ts: clock.now() + 1e9, thread_id: 'main' });
      assert.ok((await receiptOf(receipts, roomId)).every(({ ts }) => ts <= clock.now()));
    });

    it('say who is online, of users who share a room with somebody here', async () => {
      const { take, presence } = await start();
      const push = (...updates: unknown[]) => take(far, 'm.presence', { push: updates });
      await push(
        { user_id: dora, presence: 'online', status_msg: 'x'.repeat(5_000), last_active_ago: 10 },
        { user_id: alice, presence: 'online' },
        { user_id: eve, presence: 'online' },
        { user_id: `@stranger:${far}`, presence: 'online' },
        { user_id: dora, presence: 'asleep' },
        null,
      );
      assert.equal(presence.peek(dora)?.presence, 'online');
      assert.equal(presence.peek(dora)?.statusMsg?.length, 1_000);
      for (const userId of [alice, eve, `@stranger:${far}`]) assert.equal(presence.peek(userId), undefined);
      await presence.stop();
    });

    it('say nothing of presence where nobody wants to know [option: presence.enabled]', async () => {
      for (const enabled of [false, 'untracked'] as const) {
        const { take, presence } = await start({ enabled });
        await take(far, 'm.presence', { push: [{ user_id: dora, presence: 'online' }] });
        assert.equal(presence.peek(dora), undefined, String(enabled));
        await presence.stop();
      }
    });

    it('cause bounded work, for each server by itself', async () => {
      const { take, typing, roomId, clock } = await start();
      const types = (userId: string, origin: string) =>
        take(origin, 'm.typing', { room_id: roomId, user_id: userId, typing: true });
      for (let i = 0; i < 5_000; i++) await types(`@stranger:${far}`, far);
      await types(dora, far);
      assert.deepEqual(typing.inRoom(roomId), []);
      await types(eve, 'evil.example');
      clock.advance(1_000);
      await types(dora, far);
      assert.deepEqual(typing.inRoom(roomId).toSorted(), [dora, eve].toSorted());
    });

    it('may be anything', async () => {
      const { edus, roomId, typing } = await start();
      const content = fc.oneof(
        fc.jsonValue(),
        fc.dictionary(
          fc.constantFrom(roomId, 'push', 'room_id', 'user_id', 'typing', 'm.read'),
          fc.jsonValue(),
        ),
        fc.record({
          room_id: fc.constant(roomId),
          user_id: fc.constantFrom(alice, dora, 'x'),
          typing: fc.jsonValue(),
        }),
      );
      const edu = fc.record({ edu_type: fc.constantFrom('m.typing', 'm.receipt', 'm.presence'), content });
      await fc.assert(
        fc.asyncProperty(fc.array(fc.oneof(edu, fc.jsonValue()), { maxLength: 10 }), async (list) => {
          await edus.dispatch(far, list as JsonObject[]);
          assert.equal(typing.inRoom(roomId).includes(alice), false);
        }),
        { numRuns: 50 },
      );
    });

    it('have one handler each, whose failures harm no other', async () => {
      const { edus } = await start();
      const taken: unknown[] = [];
      edus.register('m.bad', () => Promise.reject(new Error('bad')));
      edus.register('m.good', (origin, { n }) => void taken.push(origin, n));
      assert.throws(() => edus.register('m.good', () => undefined), /already/);
      await edus.dispatch(far, [
        { edu_type: 'm.bad', content: {} },
        { edu_type: 'm.good', content: { n: 1 } },
      ]);
      assert.deepEqual(taken, [far, 1]);
    });

    it('are not acknowledged when the database is not there', async () => {
      const { edus } = await start();
      for (const [type, error] of [
        ['m.closed', new DatabaseClosed('closed')],
        ['m.overloaded', new DatabaseOverloaded('full')],
        ['m.late', new TransactionTimeout('late')],
        ['m.disk', new DatabaseError('the disk is full', '13')],
        ['m.io', new DatabaseError('a disk error', '778')],
        ['m.connection', new DatabaseError('Connection terminated', '')],
        ['m.memory', new DatabaseError('out of memory', '53200')],
      ] as const) {
        edus.register(type, () => Promise.reject(error));
        await assert.rejects(edus.dispatch(far, [{ edu_type: type, content: {} }]), error);
      }
      // Whatever is wrong with the EDU itself would be so the next time, too, and nothing else would ever get through.
      for (const [type, code] of [
        ['m.text', '22021'],
        ['m.constraint', '1299'],
        ['m.long', '54000'],
      ] as const) {
        edus.register(type, () => Promise.reject(new DatabaseError('it does not fit', code)));
        await edus.dispatch(far, [{ edu_type: type, content: {} }]);
      }
    });
  });

  describe('what other servers are told', () => {
    const contents = (sent: readonly { edu: EphemeralEdu }[], type: string) =>
      sent.filter(({ edu }) => edu.type === type).map(({ edu }) => edu.content);

    it('is who of the users here types, again while it goes on', async () => {
      const { typing, sent, roomId, clock, tellers } = await start();
      typing.set(alice, roomId, true, 60_000);
      typing.set(dora, roomId, true, 60_000);
      await settle();
      const said = { room_id: roomId, user_id: alice, typing: true };
      assert.deepEqual(contents(sent, 'm.typing'), [said]);
      assert.deepEqual(sent[0]?.to.toSorted(), ['evil.example', far]);
      clock.advance(30_000);
      await settle();
      assert.deepEqual(contents(sent, 'm.typing'), [said, said]);
      clock.advance(30_000);
      await settle();
      assert.deepEqual(contents(sent, 'm.typing').at(-1), { ...said, typing: false });
      for (const teller of tellers) teller.stop();
    });

    it('is what users here have read, in so many transactions at most [option: federation_rr_transactions_per_room_per_second]', async () => {
      const { under, receipts, sent, roomId, clock } = await start({ transactionsPerSecond: 4 });
      const events: string[] = [];
      for (let i = 0; i < 4; i++) events.push(await under.say(alice, roomId, String(i)));
      const read = async (userId: string, index: number, type: 'm.read' | 'm.read.private' = 'm.read') => {
        await receipts.give({ userId, roomId, type, eventId: events[index]!, threadId: undefined });
        await settle();
      };
      const told = () =>
        contents(sent, 'm.receipt').map((content) => {
          const users = (content[roomId] as { 'm.read': Record<string, { event_ids: string[] }> })['m.read'];
          return Object.entries(users).map(([userId, { event_ids: ids }]) => [
            userId,
            events.indexOf(ids[0]!),
          ]);
        });
      await read(alice, 0);
      assert.deepEqual(told(), [[[alice, 0]]]);
      await read(alice, 1);
      await read(bob, 1);
      await read(alice, 2);
      await read(alice, 3, 'm.read.private');
      assert.equal(told().length, 1);
      // Two servers, four transactions a second.
      clock.advance(499);
      await settle();
      assert.equal(told().length, 1);
      clock.advance(1);
      await settle();
      assert.deepEqual(told().slice(1), [[[alice, 2]], [[bob, 1]]]);
      clock.advance(500);
      await read(bob, 2);
      assert.deepEqual(told().at(-1), [[bob, 2]]);
    });

    it('is of each user and room one receipt to an EDU', () => {
      const of = (room: string, userId: string, thread: string) => ({
        [room]: { 'm.read': { [userId]: { data: { ts: 1, thread_id: thread }, event_ids: ['$e'] } } },
      });
      const combined = combine([
        of('!a', alice, '1'),
        of('!a', bob, '1'),
        of('!a', alice, '2'),
        of('!b', alice, '1'),
      ]);
      assert.deepEqual(combined, [
        {
          '!a': {
            'm.read': { ...of('!a', alice, '1')['!a']?.['m.read'], ...of('!a', bob, '1')['!a']?.['m.read'] },
          },
          ...of('!b', alice, '1'),
        },
        of('!a', alice, '2'),
      ]);
    });

    it('is who of the users here is online, without hurry, and to a server that comes to a room', async () => {
      const { under, presence, sent, roomId, clock } = await start();
      presence.set({ userId: alice, deviceId: 'D' }, 'online', 'here');
      presence.set({ userId: carol, deviceId: 'D' }, 'online', undefined);
      await take(presence);
      clock.advance(1_000);
      await presence.announcements.settled();
      await settle();
      const online = sent.filter(({ edu }) => edu.type === 'm.presence');
      assert.deepEqual(
        online.map(({ edu }) => edu.key),
        [alice],
      );
      assert.deepEqual([online[0]?.to.toSorted(), online[0]?.lazy], [['evil.example', far], true]);
      const [update] = (online[0]?.edu.content['push'] ?? []) as JsonObject[];
      assert.deepEqual(
        [update?.['user_id'], update?.['presence'], update?.['status_msg']],
        [alice, 'online', 'here'],
      );
      await under.join('@new:late.example', roomId);
      await settle();
      assert.deepEqual(sent.at(-1)?.to, ['late.example']);
      assert.equal(sent.at(-1)?.edu.key, alice);
      await presence.stop();
    });

    /** What another server has said is not passed on. */
    const take = async (presence: Presence) =>
      presence.report(dora, {
        presence: 'online',
        statusMsg: undefined,
        lastActive: 0,
        currentlyActive: true,
      });
  });
});
