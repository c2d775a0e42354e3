import type { Database } from '../kernel/database/index.ts';
import type { RoomRows } from '../rooms/index.ts';
import { eventTexts } from './search-index.ts';

/** The rows of this slice that refer to a room. */
export function searchRoomRows(database: Database): RoomRows {
  const texts = database.fullText(eventTexts);
  return { deleteForEvents: (writer, nids) => texts.remove(writer, nids) };
}
