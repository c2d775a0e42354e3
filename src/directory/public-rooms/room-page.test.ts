import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ListPlace } from './list-token.ts';
import { placeOf, readPage } from './room-page.ts';
import type { ListedRoom } from './store.ts';

const roomCount = 450;

/** Returns a list of rooms with a topic of this length, the largest rooms first. */
const listOf = (topicLength: number) =>
  Array.from(
    { length: roomCount },
    (_, index) =>
      ({
        room_id: `!${index}:test`,
        joined_members: roomCount - index,
        topic: 'x'.repeat(topicLength),
      }) as unknown as ListedRoom,
  );

/** Returns a function that reads at most `limit` rooms of a list: those after a place, or the last ones before it. */
const readerOf =
  (list: readonly ListedRoom[]) =>
  async (place: ListPlace | undefined, limit: number): Promise<ListedRoom[]> => {
    const index = list.findIndex(({ room_id }) => room_id === place?.roomId);
    if (place?.direction === 'backward') return list.slice(Math.max(0, index - limit), index);
    return list.slice(index + 1, index + 1 + limit);
  };

describe('pages of the public room list (readPage)', () => {
  it('a page has as many rooms as the request wants when topics are short', async () => {
    const { rooms, limit } = await readPage(readerOf(listOf(10)), undefined, 400);
    assert.deepEqual([rooms.length, limit], [401, 400]);
    const wholeList = await readPage(readerOf(listOf(10)), undefined, 500);
    assert.deepEqual([wholeList.rooms.length, wholeList.limit], [roomCount, 500]);
  });

  it('pages have fewer rooms when topics are long, and list each room once', async () => {
    const list = listOf(60_000);
    const ids: string[] = [];
    let place: ListPlace | undefined;
    for (let hasMore = true; hasMore; ) {
      const { rooms, limit } = await readPage(readerOf(list), place, 500);
      const shown = rooms.slice(0, limit);
      assert.ok(shown.length > 0 && shown.length <= 101, `${shown.length} rooms`);
      ids.push(...shown.map(({ room_id }) => room_id));
      hasMore = rooms.length > limit;
      place = placeOf(shown.at(-1)!, 'forward');
    }
    assert.deepEqual(
      ids,
      list.map(({ room_id }) => room_id),
    );
    const back = await readPage(readerOf(list), placeOf(list.at(-1)!, 'backward'), 500);
    assert.equal(back.rooms.length, back.limit + 1);
    assert.deepEqual(back.rooms, list.slice(-1 - back.rooms.length, -1));
  });
});
