import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { sizeOfEvent } from './event-size.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('InMemoryHead', () => {
    it('measures its recent events again when an event is revised or leaves the timeline', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.room(alice);
      for (const length of [1, 10_000, 20_000]) await fixture.say(alice, roomId, 'x'.repeat(length));
      const head = await fixture.engine.heads.get(roomId);
      assert.ok(head);
      const check = () =>
        assert.equal(
          head.recentBytes,
          head.recent.reduce((sum, stored) => sum + sizeOfEvent(stored), 0),
        );
      const [medium, large] = head.recent.slice(-2);
      assert.ok(medium && large);
      check();
      head.revise({ ...large, event: medium.event });
      check();
      head.revise({ ...medium, stream: undefined });
      assert.ok(!head.recent.some(({ nid }) => nid === medium.nid));
      check();
    });
  });
});
