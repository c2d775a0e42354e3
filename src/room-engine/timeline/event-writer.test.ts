import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { mentions } from '../../../test/support/databases/unreliable-database.ts';
import { alice, bob } from '../../../test/support/rooms/rooms.ts';
import { textsIn } from '../../../test/support/rooms/timeline.ts';
import { openUnreliableRooms } from '../../../test/support/rooms/unreliable-rooms.ts';
import type { RoomFact } from '../stored-event.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('events whose commit fails (EventWriter)', () => {
    it('removes the events from memory and continues from the events on disk', async () => {
      const { fixture, database } = await openUnreliableRooms(open);
      const facts: RoomFact[] = [];
      const roomId = await fixture.room(alice, bob);
      const kept = await fixture.say(alice, roomId, 'kept');
      fixture.engine.stream.subscribe((fact) => facts.push(fact));
      database.fails = () => true;
      const failedSends = await Promise.allSettled([
        fixture.say(bob, roomId, 'lost'),
        fixture.leave(bob, roomId),
        fixture.redact(alice, roomId, kept),
      ]);
      assert.ok(failedSends.every(({ status }) => status === 'rejected'));
      database.fails = () => false;
      assert.equal(facts.length, 0);
      assert.equal((await fixture.engine.heads.get(roomId))?.membership(bob), 'join');
      assert.equal((await fixture.engine.events.getById(kept))?.redactedBy, undefined);
      await fixture.say(bob, roomId, 'again');
      assert.deepEqual(await textsIn(fixture, roomId), ['kept', 'again']);
      assert.equal(facts.length, 1);
      assert.equal(fixture.streams.current, facts[0]?.stored.stream);
      const restarted = await fixture.restart(open);
      assert.deepEqual(await textsIn(restarted, roomId), ['kept', 'again']);
      await restarted.say(bob, roomId, 'and again');
    });

    it('rejects later events of the room with the reason why the earlier event could not be stored', async () => {
      const { fixture, database } = await openUnreliableRooms(open);
      const roomId = await fixture.room(alice);
      const writeBegun = Promise.withResolvers<void>();
      const { promise, resolve } = Promise.withResolvers<void>();
      database.delay = (statements) => {
        if (!mentions(statements, 'doomed')) return undefined;
        writeBegun.resolve();
        return promise;
      };
      database.fails = (statements) => mentions(statements, 'doomed');
      const first = assert.rejects(fixture.say(alice, roomId, 'doomed'), /the disk is full/);
      await writeBegun.promise;
      const second = assert.rejects(fixture.say(alice, roomId, 'behind it'), (error: Error) => {
        assert.equal(error.message, 'an earlier event of the room could not be stored');
        assert.equal((error.cause as Error).message, 'the disk is full');
        return true;
      });
      await fixture.database.transaction(async () => undefined);
      resolve();
      await Promise.all([first, second]);
    });

    it('commits the events of other rooms that shared the batch', async () => {
      const { fixture, database } = await openUnreliableRooms(open);
      const [aliceRoom, bobRoom] = [await fixture.room(alice), await fixture.room(bob)];
      database.fails = (statements) => mentions(statements, 'poison');
      const [goodResult, badResult, later] = await Promise.allSettled([
        fixture.say(alice, aliceRoom, 'good'),
        fixture.say(bob, bobRoom, 'poison'),
        fixture.say(bob, bobRoom, 'built on poison'),
      ]);
      assert.deepEqual(
        [goodResult.status, badResult.status, later.status],
        ['fulfilled', 'rejected', 'rejected'],
      );
      await fixture.say(bob, bobRoom, 'healthy');
      assert.deepEqual(await textsIn(fixture, aliceRoom), ['good']);
      assert.deepEqual(await textsIn(fixture, bobRoom), ['healthy']);
    });

    it('sends an event that could not be stored when the client repeats its transaction id', async () => {
      const { fixture, database } = await openUnreliableRooms(open);
      const roomId = await fixture.room(alice);
      const sender = { userId: alice, deviceId: 'DEVICE' };
      const send = () =>
        fixture.rooms.sending.message(sender, roomId, { type: 'm', content: { body: 'once' } }, 'txn');
      database.fails = () => true;
      await assert.rejects(send());
      database.fails = () => false;
      const eventId = await send();
      assert.equal(await send(), eventId);
      assert.deepEqual(await textsIn(fixture, roomId), ['once']);
    });
  });
});
