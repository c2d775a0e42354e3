import type { Database, TextDocument, TextIndex } from '../kernel/database/index.ts';
import { eventColumns, type RoomTables, storedEventOf } from '../room-engine/index.ts';
import { eventTexts } from './search-index.ts';
import { searchedText } from './searched-text.ts';

/**
 * The full-text index of events. A document is the text of one event. It never changes, because an edit is another
 * event.
 */
export const eventTextIndex: TextIndex = { name: eventTexts, changes: false, documents };

async function documents(database: Database, nids: readonly number[]): Promise<TextDocument[]> {
  const rows = await database
    .scanner<RoomTables>()
    .selectFrom('events')
    .innerJoin('rooms', 'rooms.room_nid', 'events.room_nid')
    .select(eventColumns)
    .where('events.nid', 'in', nids)
    .execute();
  return rows.map(storedEventOf).flatMap((stored) => {
    const text = searchedText(stored);
    return text === undefined ? [] : [{ id: stored.nid, scope: stored.roomNid, text }];
  });
}
