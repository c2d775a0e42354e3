import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice } from '../../../test/support/rooms/rooms.ts';
import {
  DatabaseClosed,
  DatabaseError,
  DatabaseOverloaded,
  TransactionTimeout,
} from '../../kernel/database/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { Receipts } from '../../receipts/index.ts';
import { EduHandlers, type EduHandlersByType } from './edu-handlers.ts';
import { dora, eve, remoteServer, startEdus } from './test/edus-under-test.ts';

forSelectedDatabases(import.meta.url, (open) => {
  const receiptsIn = async (receipts: Receipts, roomId: string) =>
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
    it('sets typing for users of the sending server who are in the room', async () => {
      const { handle, typing, roomId, clock } = await startEdus(open);
      const receiveTyping = (userId: string, origin = remoteServer, room = roomId, is: unknown = true) =>
        handle(origin, 'm.typing', { room_id: room, user_id: userId, typing: is });
      await receiveTyping(dora);
      await receiveTyping(dora, 'evil.example');
      await receiveTyping(alice);
      await receiveTyping(eve);
      await receiveTyping(`@stranger:${remoteServer}`);
      await receiveTyping(dora, remoteServer, '!elsewhere:test');
      assert.deepEqual(typing.inRoom(roomId), [dora]);
      await receiveTyping(dora, remoteServer, roomId, 'no');
      clock.advance(59_000);
      assert.deepEqual(typing.inRoom(roomId), [dora]);
      await receiveTyping(dora, remoteServer, roomId, false);
      assert.deepEqual(typing.inRoom(roomId), []);
    });

    it('ignores typing and receipts where the server ACL denies the server', async () => {
      const { fixture, handle, typing, receipts, roomId } = await startEdus(open);
      const eventId = await fixture.say(alice, roomId, 'hello');
      const acl = { allow: ['*'], deny: [remoteServer] };
      const state = { type: 'm.room.server_acl', stateKey: '' };
      await fixture.rooms.sending.state({ userId: alice, deviceId: 'D' }, roomId, state, acl);
      await handle(remoteServer, 'm.typing', { room_id: roomId, user_id: dora, typing: true });
      await handle(remoteServer, 'm.receipt', {
        [roomId]: { 'm.read': { [dora]: { data: {}, event_ids: [eventId] } } },
      });
      assert.deepEqual([typing.inRoom(roomId), await receiptsIn(receipts, roomId)], [[], []]);
      await handle('evil.example', 'm.typing', { room_id: roomId, user_id: eve, typing: true });
      assert.deepEqual(typing.inRoom(roomId), [eve]);
    });

    it('records read receipts of users of the sending server who are in the room', async () => {
      const { fixture, handle, receipts, roomId, clock } = await startEdus(open);
      const first = await fixture.say(alice, roomId, '1');
      const second = await fixture.say(alice, roomId, '2');
      const other = await fixture.say(alice, await fixture.room(alice), 'elsewhere');
      const read = (
        userId: string,
        ids: unknown,
        data: unknown = { ts: 5 },
        type = 'm.read',
        origin = remoteServer,
      ) => handle(origin, 'm.receipt', { [roomId]: { [type]: { [userId]: { data, event_ids: ids } } } });
      await read(dora, [second, first]);
      await read(dora, [first]);
      await read(dora, [first], { ts: 6, thread_id: 'main' });
      await read(alice, [first]);
      await read(eve, [first]);
      await read(`@stranger:${remoteServer}`, [first]);
      await read(dora, [second], {}, 'm.read.private');
      await read(dora, [other]);
      await read(dora, 'none');
      await read(dora, [second], { thread_id: 5 });
      await read(dora, [second], { thread_id: 'no event id' });
      assert.deepEqual(
        (await receiptsIn(receipts, roomId)).toSorted((x, y) => x.ts - y.ts),
        [
          { eventId: second, type: 'm.read', userId: dora, ts: 5, thread_id: undefined },
          { eventId: first, type: 'm.read', userId: dora, ts: 6, thread_id: 'main' },
        ],
      );
      await read(dora, [second], { ts: clock.now() + 1e9, thread_id: 'main' });
      assert.ok((await receiptsIn(receipts, roomId)).every(({ ts }) => ts <= clock.now()));
    });

    it('stores the newest 100 receipts of a remote user for threads of a room, and those for the room and for its main timeline', async () => {
      const { fixture, handle, roomId } = await startEdus(open);
      const eventId = await fixture.say(alice, roomId, 'hello');
      const threads = Array.from({ length: 105 }, (_, index) => `$thread${index}`);
      for (const thread_id of [undefined, 'main', ...threads]) {
        const receipt = { data: { ts: 5, thread_id }, event_ids: [eventId] };
        await handle(remoteServer, 'm.receipt', { [roomId]: { 'm.read': { [dora]: receipt } } });
      }
      const reader = fixture.database.reader<{ receipts: { thread_id: string; position: number } }>();
      const rows = await reader.selectFrom('receipts').select('thread_id').orderBy('position').execute();
      assert.deepEqual(
        rows.map(({ thread_id }) => thread_id),
        ['', 'main', ...threads.slice(5)],
      );
    });

    it('records presence of users of the sending server who share a room with a local user', async () => {
      const { handle, presence } = await startEdus(open);
      const push = (...updates: unknown[]) => handle(remoteServer, 'm.presence', { push: updates });
      await push(
        { user_id: dora, presence: 'online', status_msg: 'x'.repeat(5_000), last_active_ago: 10 },
        { user_id: alice, presence: 'online' },
        { user_id: eve, presence: 'online' },
        { user_id: `@stranger:${remoteServer}`, presence: 'online' },
        { user_id: dora, presence: 'asleep' },
        null,
      );
      assert.equal(presence.peek(dora)?.presence, 'online');
      assert.equal(presence.peek(dora)?.statusMsg?.length, 1_000);
      for (const userId of [alice, eve, `@stranger:${remoteServer}`])
        assert.equal(presence.peek(userId), undefined);
      await presence.stop();
    });

    it('handles EDUs about users with historical ids of printable ASCII, and ignores other invalid user ids', async () => {
      const { fixture, handle, typing, receipts, presence, roomId } = await startEdus(open);
      const eventId = await fixture.say(alice, roomId, 'hello');
      const printable = ['@Dora:far.example', '@!~"^:far.example', '@dora=2Fx/+:far.example'];
      const invalid = ['@:far.example', '@döra:far.example', '@d a:far.example', '@\u{1f600}:far.example'];
      for (const userId of [...printable, ...invalid]) {
        await fixture.join(userId, roomId);
        await handle(remoteServer, 'm.typing', { room_id: roomId, user_id: userId, typing: true });
        const receipt = { data: { ts: 5 }, event_ids: [eventId] };
        await handle(remoteServer, 'm.receipt', { [roomId]: { 'm.read': { [userId]: receipt } } });
        await handle(remoteServer, 'm.presence', { push: [{ user_id: userId, presence: 'online' }] });
      }
      assert.deepEqual(typing.inRoom(roomId).toSorted(), printable.toSorted());
      const readers = (await receiptsIn(receipts, roomId)).map(({ userId }) => userId);
      assert.deepEqual(readers.toSorted(), printable.toSorted());
      const online = [...printable, ...invalid].filter((userId) => presence.peek(userId));
      assert.deepEqual(online, printable);
      await presence.stop();
    });

    it('ignores presence EDUs where presence is disabled [option: presence.enabled]', async () => {
      for (const enabled of [false, 'untracked'] as const) {
        const { handle, presence } = await startEdus(open, { enabled });
        await handle(remoteServer, 'm.presence', { push: [{ user_id: dora, presence: 'online' }] });
        assert.equal(presence.peek(dora), undefined, String(enabled));
        await presence.stop();
      }
    });

    it('limits the rate of updates per server', async () => {
      const { handle, typing, roomId, clock } = await startEdus(open);
      const receiveTyping = (userId: string, origin: string) =>
        handle(origin, 'm.typing', { room_id: roomId, user_id: userId, typing: true });
      for (let i = 0; i < 5_000; i++) await receiveTyping(`@stranger:${remoteServer}`, remoteServer);
      await receiveTyping(dora, remoteServer);
      assert.deepEqual(typing.inRoom(roomId), []);
      await receiveTyping(eve, 'evil.example');
      clock.advance(1_000);
      await receiveTyping(dora, remoteServer);
      assert.deepEqual(typing.inRoom(roomId).toSorted(), [dora, eve].toSorted());
    });

    it('handles arbitrary EDU content without errors, and never records a local user as typing', async () => {
      const { edus, roomId, typing } = await startEdus(open);
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
          await edus.dispatch(remoteServer, list as JsonObject[]);
          assert.equal(typing.inRoom(roomId).includes(alice), false);
        }),
        { numRuns: 50 },
      );
    });

    it('allows one handler per EDU type, whose failure affects no EDU of another type', async () => {
      const handled: unknown[] = [];
      const handlers: EduHandlersByType = {
        'm.bad': () => Promise.reject(new Error('bad')),
        'm.good': (origin, { n }) => void handled.push(origin, n),
      };
      const edus = new EduHandlers(silentLogger, [handlers]);
      assert.throws(
        () => new EduHandlers(silentLogger, [handlers, { 'm.good': () => undefined }]),
        /m\.good have two handlers/,
      );
      await edus.dispatch(remoteServer, [
        { edu_type: 'm.bad', content: {} },
        { edu_type: 'm.good', content: { n: 1 } },
      ]);
      assert.deepEqual(handled, [remoteServer, 1]);
    });

    it('rejects the transaction when the database fails, but not for a database error that the EDU causes', async () => {
      for (const [type, error] of [
        ['m.closed', new DatabaseClosed('closed')],
        ['m.overloaded', new DatabaseOverloaded('full')],
        ['m.late', new TransactionTimeout('late')],
        ['m.disk', new DatabaseError('the disk is full', '13')],
        ['m.io', new DatabaseError('a disk error', '778')],
        ['m.connection', new DatabaseError('Connection terminated', '')],
        ['m.memory', new DatabaseError('out of memory', '53200')],
      ] as const) {
        const edus = new EduHandlers(silentLogger, [{ [type]: () => Promise.reject(error) }]);
        await assert.rejects(edus.dispatch(remoteServer, [{ edu_type: type, content: {} }]), error);
      }
      // An error caused by the EDU itself would occur again with each repetition, and block the server's transactions.
      for (const [type, code] of [
        ['m.text', '22021'],
        ['m.constraint', '1299'],
        ['m.long', '54000'],
      ] as const) {
        const fail = () => Promise.reject(new DatabaseError('it does not fit', code));
        const edus = new EduHandlers(silentLogger, [{ [type]: fail }]);
        await edus.dispatch(remoteServer, [{ edu_type: type, content: {} }]);
      }
    });
  });
});
