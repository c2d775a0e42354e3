import type { ListRequest } from '../request.ts';

/**
 * Returns the rooms in the windows of a list, each once and in their order; all rooms if the list has no windows.
 * Reads each room once, because there may be 100 windows.
 */
export function inWindows<Room>(
  rooms: readonly Room[],
  { ranges, range }: Pick<ListRequest, 'ranges' | 'range'>,
): readonly Room[] {
  const windows = ranges ?? (range ? [range] : undefined);
  if (!windows) return rooms;
  const inside: Room[] = [];
  let next = 0;
  for (const [first, last] of windows.toSorted(([a], [b]) => a - b)) {
    const end = Math.min(last + 1, rooms.length);
    for (next = Math.max(next, first); next < end; next++) inside.push(rooms[next]!);
  }
  return inside;
}
