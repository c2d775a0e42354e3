import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import {
  MessageRetention,
  type RetentionOptions,
  retentionType,
  withoutExpired,
} from './message-retention.ts';

const disabledOptions: RetentionOptions = {
  enabled: false,
  default_policy: { max_lifetime: 1_000 },
  allowed_lifetime_min: null,
  allowed_lifetime_max: null,
};

forSelectedDatabases(import.meta.url, (open) => {
  describe('the expiry of messages (MessageRetention)', () => {
    it('reads the policy of an active room from memory, and lets no message expire while retention is off', async () => {
      const fixture = await RoomsUnderTest.open(open, [], {
        options: { retention: { ...disabledOptions, enabled: true } },
      });
      const { rooms, engine, clock, database } = fixture;
      const roomId = await rooms.creation.create(alice, {
        initial_state: [{ type: retentionType, state_key: '', content: { max_lifetime: 5_000 } }],
      });
      const [head, withoutPolicy] = [
        await engine.heads.get(roomId),
        await engine.heads.get(await fixture.room(alice)),
      ];
      assert.ok(head && withoutPolicy);
      const { reads, scans } = database.statistics;
      assert.equal(engine.retention.expiredBefore(head), clock.now() - 5_000);
      assert.equal(engine.retention.expiredBefore(withoutPolicy), clock.now() - 1_000);
      assert.deepEqual([database.statistics.reads, database.statistics.scans], [reads, scans]);
      const message = (await engine.events.getById(await fixture.say(alice, roomId, 'hello')))!;
      const state = (await engine.events.get(head.entry(retentionType, '')!.nid))!;
      assert.deepEqual(await withoutExpired(engine, [state, message]), [state, message]);
      clock.advance(5_001);
      assert.deepEqual(await withoutExpired(engine, [state, message]), [state]);
      const disabled = new MessageRetention({ events: engine.events, clock, options: disabledOptions });
      assert.equal(disabled.expiredBefore(head), Number.NEGATIVE_INFINITY);
    });
  });

  it('MessageRetention uses the max_lifetime of the default policy where the max_lifetime of the room is absent or invalid', () => {
    const events = { peek: () => undefined, get: async () => undefined };
    const retention = new MessageRetention({ events, clock: manualClock(), options: disabledOptions });
    for (const max_lifetime of [undefined, null, '5000', 1.5, -1, 2 ** 53])
      assert.equal(retention.lifetimeBy({ ...(max_lifetime !== undefined && { max_lifetime }) }), 1_000);
    assert.equal(retention.lifetimeBy({ max_lifetime: 0 }), 0);
  });
});
