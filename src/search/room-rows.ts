import type { RoomRows } from '../kernel/slices/index.ts';
import { eventTexts } from './search-index.ts';

/** Deletes the indexed texts of a room's events when the events are deleted. */
export const searchRoomRows: RoomRows = {
  deleteForEvents: (writer, nids, database) => database.fullText(eventTexts).remove(writer, nids),
};
