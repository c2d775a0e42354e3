import type { ListPlace } from './list-token.ts';
import type { ListedRoom } from './store.ts';

/** Number of rooms on a page when the request sets no limit. */
export const defaultLimit = 100;

/** Number of rooms that are read together: a page of the default size and the room after it. */
const roomsAtOnce = defaultLimit + 1;

/**
 * A page ends when the texts of its rooms have this many characters, so that 500 rooms with topics of 60 kB do not
 * become one response.
 */
const maxCharacters = 1_048_576;

/**
 * Reads a page of the list, some rooms at a time.
 * @returns the number of rooms on the page as `limit`, and the rooms: one room more than `limit` when there is another
 * page in this direction
 */
export async function readPage(
  read: (place: ListPlace | undefined, limit: number) => Promise<ListedRoom[]>,
  place: ListPlace | undefined,
  limit: number,
): Promise<{ rooms: readonly ListedRoom[]; limit: number }> {
  const backward = place?.direction === 'backward';
  const rooms: ListedRoom[] = [];
  let characters = 0;
  for (let from = place; rooms.length <= limit; ) {
    const size = Math.min(roomsAtOnce, limit + 1 - rooms.length);
    const found = await read(from, size);
    if (backward) rooms.unshift(...found);
    else rooms.push(...found);
    for (const room of found) characters += charactersOf(room);
    const end = backward ? rooms[0] : rooms.at(-1);
    if (found.length < size || !end) break;
    if (characters >= maxCharacters) return { rooms, limit: Math.min(limit, Math.max(1, rooms.length - 1)) };
    from = placeOf(end, backward ? 'backward' : 'forward');
  }
  return { rooms, limit };
}

/** Returns the number of characters of the texts that clients receive about a room. */
const charactersOf = ({ name, topic, canonical_alias, avatar_url, room_type }: ListedRoom): number =>
  [name, topic, canonical_alias, avatar_url, room_type].reduce((sum, text) => sum + (text?.length ?? 0), 0);

/** Returns the place beside a room. */
export const placeOf = (room: ListedRoom, direction: ListPlace['direction']): ListPlace => ({
  direction,
  joinedMembers: room.joined_members,
  roomId: room.room_id,
});
