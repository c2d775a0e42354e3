import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TimeSlices } from '../../../kernel/time-slices.ts';
import type { RoomReader, UserRoom } from '../../../room-engine/index.ts';
import type { FiltersJson } from '../request.ts';
import { countedReads } from '../test/counted-reads.ts';
import { type Filtering, ListFilter } from './list-filter.ts';
import type { RoomTraitsReader } from './room-traits.ts';

const roomCount = 500;
const rooms = Array.from(
  { length: roomCount },
  (_, index): UserRoom => ({
    roomId: `!${index}:test`,
    roomNid: index,
    membership: 'join',
    eventNid: index,
    stream: index,
    forgotten: false,
  }),
);
const names = Array.from({ length: 1_000 }, (_, index) => `name ${index}`);

/** Returns a filter over rooms of one type without state, and the ids of the rooms whose state it has read. */
function openFilter() {
  const read: string[] = [];
  const heads = {
    get: (roomId: string) => {
      read.push(roomId);
      return Promise.resolve(undefined);
    },
  };
  const engine = { heads, events: { getMany: () => Promise.resolve(new Map()) } } as unknown as RoomReader;
  const traits = {
    of: () => Promise.resolve({ isEncrypted: false, type: 'm.test', name: 'Room' }),
  } as unknown as RoomTraitsReader;
  return { filter: new ListFilter({ engine, traits }), read };
}

/** Returns the shared data of the lists. @param now returns the time in milliseconds */
const filteringAt = (now: () => number): Filtering => ({
  marks: { direct: new Set(), tags: new Map(rooms.map(({ roomId }) => [roomId, new Set(['m.test'])])) },
  slices: new TimeSlices({ now, monotonic: now } as ConstructorParameters<typeof TimeSlices>[0]),
  spaces: new Map(),
});

describe('cost of ListFilter', () => {
  for (const field of ['tags', 'not_tags', 'room_types', 'not_room_types', 'spaces'] as const) {
    it(`reads each of 1,000 ${field} at most once for all rooms`, async () => {
      const { items, reads } = countedReads(names);
      const filters: FiltersJson = { [field]: items };
      await openFilter().filter.select(
        rooms,
        filters,
        filteringAt(() => 0),
      );
      assert.ok(reads() <= names.length, `${reads()} reads`);
    });
  }

  it('reads the state of a space once for all lists of a request', async () => {
    const { filter, read } = openFilter();
    const filtering = filteringAt(() => 0);
    for (let list = 0; list < 3; list++)
      await filter.select(rooms, { spaces: ['!1:test', '!2:test'] }, filtering);
    assert.deepEqual(read, ['!1:test', '!2:test']);
  });

  it('yields to the event loop when the filtering of many rooms takes longer than a time slice', async () => {
    let now = 0;
    let turns = 0;
    let isRunning = true;
    const turn = () => {
      turns++;
      if (isRunning) setImmediate(turn);
    };
    setImmediate(turn);
    const filtering = filteringAt(() => (now += 1_000));
    await openFilter().filter.select(rooms, { room_types: ['m.test'] }, filtering);
    isRunning = false;
    assert.ok(turns >= 10, `${turns} turns`);
  });
});
