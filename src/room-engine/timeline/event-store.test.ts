import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { clockReadsDuring, fastClock } from '../../../test/support/clocks/fast-clock.ts';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import { TimeSlices } from '../../kernel/time-slices.ts';
import type { StoredEvent } from '../stored-event.ts';
import { EventCache, type PendingRead } from './event-cache.ts';

/** Number of events of a test: a page of them has about a megabyte when their bodies have 40 kB. */
const eventCount = 25;

forSelectedDatabases(import.meta.url, (open) => {
  describe('reading pages of events (EventStore)', () => {
    it('lets other work run between long events, but not between short ones', async () => {
      const reads: number[] = [];
      for (const length of [10, 40_000]) {
        const clock = fastClock();
        const fixture = await RoomsUnderTest.open(open, [], { clock });
        const roomId = await fixture.room(alice);
        for (let index = 0; index < eventCount; index++) await fixture.say(alice, roomId, 'x'.repeat(length));
        const { engine } = await fixture.restart(open, { clock });
        const { roomNid } = (await engine.heads.get(roomId))!;
        const page = { limit: eventCount, direction: 'backward' } as const;
        reads.push(
          await clockReadsDuring(clock, async () => {
            const events = await engine.events.history(roomNid, undefined, page);
            assert.equal(events.length, eventCount);
          }),
        );
      }
      const [short = 0, long = 0] = reads;
      assert.ok(long - short >= 10, `${short} and ${long}`);
    });

    it('returns the ids of events without reading the events', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.room(alice);
      const eventId = await fixture.say(alice, roomId, 'hello');
      const nid = await fixture.positionOf(eventId);
      const { engine } = await fixture.restart(open);
      assert.deepEqual([...(await engine.events.idsOf([nid, 12_345]))], [[nid, eventId]]);
      assert.equal(engine.events.peek(nid), undefined);
    });
  });
});

/** A cache of events whose reads a test begins and ends. */
class EventCacheUnderTest extends EventCache {
  override beginRead(): PendingRead {
    return super.beginRead();
  }

  override cacheRead(stored: StoredEvent, read: PendingRead): StoredEvent {
    return super.cacheRead(stored, read);
  }

  override endRead(read: PendingRead): void {
    super.endRead(read);
  }
}

describe('caching the events of a read (EventCache)', () => {
  const openCache = () => {
    const clock = manualClock();
    const options = { size: 100, slices: new TimeSlices(clock), freezesEvents: false };
    return new EventCacheUnderTest(plainCaches(clock), options);
  };
  const storedEvent = (nid: number) =>
    ({
      nid,
      roomNid: 1,
      outOfBand: false,
      redactedBy: undefined,
      event: { eventId: `$${nid}`, content: {}, authEventIds: [], prevEventIds: [] },
    }) as unknown as StoredEvent;

  it('marks an event as redacted whose row was read before the redaction was stored', () => {
    const cache = openCache();
    const read = cache.beginRead();
    cache.markRedacted(1, 9);
    assert.equal(cache.cacheRead(storedEvent(1), read).redactedBy, 9);
    assert.equal(cache.cacheRead(storedEvent(2), read).redactedBy, undefined);
    cache.endRead(read);
    assert.equal(cache.peek(1)?.redactedBy, 9);
  });

  it('does not cache events that were read before a deletion', () => {
    const cache = openCache();
    const read = cache.beginRead();
    cache.followRemoval({ kind: 'purged', roomId: '!a', roomNid: 1 });
    cache.cacheRead(storedEvent(1), read);
    cache.endRead(read);
    assert.equal(cache.peek(1), undefined);
    const later = cache.beginRead();
    cache.cacheRead(storedEvent(1), later);
    assert.equal(cache.peek(1)?.nid, 1);
  });
});
