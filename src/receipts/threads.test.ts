import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { alice, RoomsUnderTest } from '../../test/support/rooms/rooms.ts';
import { belongsToThread, threadIdOf } from './threads.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('the thread of an event, for receipts', () => {
    it('finds the thread of an event over at most three relations', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.room(alice);
      const relate = (rel_type: string, event_id: string) =>
        fixture.say(alice, roomId, 'x', { 'm.relates_to': { rel_type, event_id } });
      const root = await fixture.say(alice, roomId, 'root');
      const reply = await fixture.reply(alice, roomId, root);
      const first = await relate('m.reference', reply);
      const second = await relate('m.reference', first);
      const third = await relate('m.reference', second);
      const fourth = await relate('m.reference', third);
      const expected: [eventId: string, threadId: string, mayBeReadInThread: boolean][] = [
        [root, 'main', true],
        [reply, root, true],
        [first, root, true],
        [second, root, true],
        [third, root, true],
        [fourth, 'main', false],
        [await relate('m.reference', root), 'main', true],
        [await relate('m.reference', '$unknown'), 'main', false],
      ];
      for (const [eventId, threadId, mayBeReadInThread] of expected) {
        const stored = (await fixture.engine.events.getById(eventId))!;
        assert.equal(await threadIdOf(fixture.engine, stored), threadId);
        assert.equal(await belongsToThread(fixture.engine, stored, root), mayBeReadInThread);
      }
    });

    it('ignores relations to events of other rooms', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const [here, elsewhere] = [await fixture.room(alice), await fixture.room(alice)];
      const reply = await fixture.reply(alice, elsewhere, await fixture.say(alice, elsewhere, 'root'));
      const reference = await fixture.say(alice, here, 'x', {
        'm.relates_to': { rel_type: 'm.reference', event_id: reply },
      });
      const stored = (await fixture.engine.events.getById(reference))!;
      assert.equal(await threadIdOf(fixture.engine, stored), 'main');
    });
  });
});
