import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RelevantRoom } from '../rooms/relevant-room.ts';
import { countedReads } from '../test/counted-reads.ts';
import { roomsFor } from './extension.ts';

/** Returns a room with only the fields that `roomsFor` reads. */
const roomIn = (roomId: string, lists: readonly string[], isSubscribed: boolean) =>
  ({ request: { room: { roomId }, lists }, isSubscribed }) as unknown as RelevantRoom;

const rooms = [
  roomIn('!both', ['one', 'two'], true),
  roomIn('!listed', ['two'], false),
  roomIn('!subscribed', [], true),
];

describe('roomsFor selects the rooms of an extension', () => {
  const cases: [request: Parameters<typeof roomsFor>[1], expected: string[]][] = [
    [{}, ['!both', '!listed', '!subscribed']],
    [{ lists: null, rooms: ['*'] }, ['!both', '!listed', '!subscribed']],
    [{ lists: ['one'], rooms: [] }, ['!both']],
    [{ lists: [], rooms: ['!subscribed', '!listed'] }, ['!subscribed']],
    [{ lists: ['three', '*'], rooms: [] }, ['!both', '!listed']],
    [{ lists: [], rooms: [] }, []],
  ];
  for (const [request, expected] of cases) {
    it(`returns ${expected.join(', ') || 'no room'} for ${JSON.stringify(request)}`, () => {
      assert.deepEqual(
        roomsFor(rooms, request).map(({ request: { room } }) => room.roomId),
        expected,
      );
    });
  }

  it('reads the lists and rooms of a request once, not again for each room', () => {
    const names = Array.from({ length: 1_000 }, (_, index) => `name ${index}`);
    const [lists, roomIds] = [countedReads(names), countedReads(names)];
    const many = Array.from({ length: 100 }, (_, index) => roomIn(`!${index}`, ['one', 'two'], true));
    assert.deepEqual(roomsFor(many, { lists: lists.items, rooms: roomIds.items }), []);
    assert.deepEqual([lists.reads() <= 1_000, roomIds.reads() <= 1_000], [true, true]);
  });
});
