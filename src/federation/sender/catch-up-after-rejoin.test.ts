import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import {
  type Recipient,
  SenderUnderTest,
  until,
} from '../../../test/support/other-servers/federation-sender.ts';
import { ann, ReferenceRoom } from '../../../test/support/rooms/reference-room.ts';
import { alice } from '../../../test/support/rooms/rooms.ts';
import type { JsonObject } from '../../protocol/index.ts';

const minute = 60_000;

forSelectedDatabases(import.meta.url, (open) => {
  describe('events that a destination missed before the only local user was removed from the room and joined again', () => {
    let test: SenderUnderTest;
    afterEach(() => test.close());

    /** Lets Alice send messages that do not arrive; then she is kicked, and joins again. */
    const removedAndBack = async () => {
      test = await SenderUnderTest.open(open);
      const a = await test.recipient('a.example');
      a.answer = () => 503;
      const room = new ReferenceRoom();
      const { placement } = test.rooms.engine;
      await placement.enter(room.room, room.join(alice));
      await test.rooms.say(alice, room.roomId, 'on its way');
      await until(() => test.sender.status.destinations['waiting to retry'] > 0);
      await test.rooms.say(alice, room.roomId, 'before');
      const kick = room.member(alice, 'leave', { sender: ann });
      await placement.place(room.roomId, room.get(kick));
      await placement.enter(room.room, room.join(alice, [kick]));
      await test.sender.eventsQueued();
      return { a, room };
    };

    const bodiesSince = (a: Recipient, before: number) =>
      a.arrived
        .slice(before)
        .flatMap(({ pdus }) => pdus.map(({ content }) => (content as JsonObject)['body']))
        .filter((body) => body !== undefined);

    it('sends an event from before the removal when its destination is reachable again', async () => {
      const { a } = await removedAndBack();
      const before = a.arrived.length;
      a.answer = () => 200;
      test.clock.advance(minute);
      await until(() => bodiesSince(a, before).includes('before'));
    });

    it('sends after a restart the event from before the removal, and then later events', async () => {
      const { a, room } = await removedAndBack();
      await test.restart();
      await test.rooms.say(alice, room.roomId, 'after');
      await test.sender.eventsQueued();
      const before = a.arrived.length;
      a.answer = () => 200;
      test.clock.advance(200);
      test.clock.advance(minute);
      await until(() => bodiesSince(a, before).includes('after'));
      assert.deepEqual(bodiesSince(a, before), ['before', 'after']);
    });
  });
});
