import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { RoomReader, StoredEvent } from '../../room-engine/index.ts';
import { EventWalk } from './event-walk.ts';

/**
 * Opens a history that is a tree: each event has 20 previous events of its own.
 * @returns a walk through the history, and the ids of the events that it has read so far
 */
function openTree() {
  const read = new Set<string>();
  const stored = (eventId: string) =>
    ({
      nid: 1_000_000 - eventId.length,
      roomNid: 1,
      stream: 1,
      rejected: false,
      softFailed: false,
      event: {
        eventId,
        depth: 100 - eventId.length,
        prevEventIds: Array.from({ length: 20 }, (_, index) => eventId + String.fromCharCode(97 + index)),
      },
    }) as unknown as StoredEvent;
  const events = {
    history: async () => [],
    getManyById: async (ids: Iterable<string>) => {
      const wanted = [...ids];
      for (const id of wanted) read.add(id);
      return new Map(wanted.map((id) => [id, stored(id)]));
    },
  };
  return { walk: new EventWalk({ events } as unknown as RoomReader, 1), read };
}

it('a walk for /backfill reads at most five times as many events as it may return, plus the previous events of one event', async () => {
  const { walk, read } = openTree();
  const served = await walk.newestFirst(['$'], 100);
  assert.ok(served.length >= 20 && served.length <= 100, `${served.length} events`);
  assert.ok(read.size <= 521, `${read.size} events were read`);
});
