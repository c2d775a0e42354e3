import type { RoomRows } from '../kernel/slices/index.ts';
import { eventTexts } from './search-index.ts';

/** The rows of this slice that refer to a room. */
export const searchRoomRows: RoomRows = {
  deleteForEvents: (writer, nids, database) => database.fullText(eventTexts).remove(writer, nids),
};
