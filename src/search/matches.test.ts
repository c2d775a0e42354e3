import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fastClock } from '../../test/support/clocks/fast-clock.ts';
import { noFilter } from '../filters/index.ts';
import type { RoomReader, StoredEvent, UserRoom } from '../room-engine/index.ts';
import type { VisibleEvent } from '../rooms/index.ts';
import { type MatchesDeps, MatchFinder } from './matches.ts';
import { searchKeys } from './searched-text.ts';

const roomCount = 500;

/** Opens a search in the many rooms of a user. One of the rooms has candidates. Records the rooms that are loaded. */
function openSearch(candidateCount: number) {
  const loaded: string[] = [];
  const rooms = Array.from({ length: roomCount }, (_, index): [string, UserRoom] => [
    `!${index}:test`,
    {
      roomId: `!${index}:test`,
      roomNid: index,
      membership: 'join',
      eventNid: index,
      stream: index,
      forgotten: false,
    },
  ]);
  const stored = (nid: number) =>
    ({
      nid,
      roomNid: 7,
      event: { type: 'm.room.message', sender: '@bob:test', content: { body: `needle ${nid}` } },
    }) as unknown as StoredEvent;
  const engine = {
    userRooms: { of: async () => new Map(rooms) },
    heads: {
      get: async (roomId: string) => {
        loaded.push(roomId);
        return undefined;
      },
    },
    events: { getMany: async (nids: number[]) => new Map(nids.map((nid) => [nid, stored(nid)])) },
  } as unknown as RoomReader;
  const index = {
    caughtUp: async () => undefined,
    candidates: async () => Array.from({ length: candidateCount }, (_, nid) => candidateCount - nid),
  };
  const clock = fastClock();
  const relations = { filterByRelations: async (events: readonly VisibleEvent[]) => events };
  const finder = new MatchFinder({ engine, relations, index, clock } as unknown as MatchesDeps);
  const find = () =>
    finder.find({
      userId: '@alice:test',
      term: 'needle',
      keys: searchKeys,
      filter: noFilter.room.timeline,
      place: {},
      limit: 100,
    });
  return { find, loaded, clock };
}

describe('finding matches (MatchFinder)', () => {
  it('loads only the rooms that have matches', async () => {
    const { find, loaded } = openSearch(10);
    await find();
    assert.deepEqual(loaded, ['!7:test']);
  });

  it('lets other work run between the texts that it compares', async () => {
    const { find, clock } = openSearch(150);
    await find();
    assert.ok(clock.reads >= 150, `${clock.reads} reads of the clock`);
  });
});
