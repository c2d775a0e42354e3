import { parseJson } from '../protocol/index.ts';
import { compileRoomEventFilter, noFilter } from './compile-filter.ts';
import type { RoomEventFilter } from './event-filter.ts';

/** Maximum size of a filter in characters, and its maximum depth. */
const limits = { maxSize: 65_536, maxDepth: 10 };

/**
 * Parses the query parameter `filter` of requests that read a room. Without the parameter, everything passes.
 * @throws MatrixError M_NOT_JSON, M_BAD_JSON
 */
export function readFilter(json: string | undefined): RoomEventFilter {
  return json === undefined ? noFilter.room.timeline : compileRoomEventFilter(parseJson(json, limits));
}
