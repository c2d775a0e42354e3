import { writerFor } from '../kernel/database/index.ts';
import type { RoomRows } from '../kernel/slices/index.ts';
import type { RoomTables } from './tables.ts';

const byNid = { column: 'room_nid', holds: 'room nid' } as const;
const byId = { column: 'room_id', holds: 'room id' } as const;

/**
 * The rows that are deleted with a room, other than its events, its state groups and the room itself, which
 * the purge deletes.
 */
export const roomEngineRows: RoomRows = {
  tables: [
    { ...byNid, table: 'memberships', key: ['user_id', 'room_nid'] },
    { ...byNid, table: 'current_state', key: ['room_nid', 'key_nid'] },
    { ...byNid, table: 'state_deltas', key: ['room_nid', 'stream', 'key_nid'] },
    { ...byNid, table: 'event_times', key: ['room_nid', 'ts', 'nid'] },
    { ...byNid, table: 'backward_extremities', key: ['room_nid', 'event_id'] },
    { ...byNid, table: 'outside_events', key: ['nid'] },
    { ...byNid, table: 'stripped_state', key: ['room_nid', 'user_id'] },
    { ...byId, table: 'room_aliases', key: ['alias'] },
    { ...byId, table: 'published_rooms', key: ['room_id', 'network'] },
  ],
  async deleteForEvents(writer, nids) {
    const tables = writerFor<RoomTables>(writer);
    await tables.deleteFrom('event_auth').where('event_nid', 'in', nids).execute();
    await tables.deleteFrom('redacted_events').where('event_nid', 'in', nids).execute();
    await tables.deleteFrom('pending_redactions').where('redaction_nid', 'in', nids).execute();
    await tables.deleteFrom('event_places').where('nid', 'in', nids).execute();
  },
};
