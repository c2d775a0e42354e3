import { writerFor } from '../kernel/database/index.ts';
import type { RoomRows } from '../kernel/slices/index.ts';
import type { RelationTables } from './tables.ts';

/** The rows of this slice that refer to a room. */
export const relationRoomRows: RoomRows = {
  tables: [{ table: 'threads', column: 'room_nid', holds: 'room nid', key: ['root_id', 'room_nid'] }],
  async deleteForEvents(writer, nids) {
    await writerFor<RelationTables>(writer)
      .deleteFrom('event_relations')
      .where('child_nid', 'in', nids)
      .execute();
  },
};
