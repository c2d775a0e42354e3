import type { Database } from '../../../kernel/database/index.ts';
import { forbidden, type RoomVersion } from '../../../protocol/index.ts';
import type { RoomTables } from '../../tables.ts';
import type { EventStore } from '../../timeline/event-store.ts';
import type { WritableHead } from '../../timeline/writable-head.ts';

/** Maximum number of events that one transaction deletes. */
const maxDeletedTogether = 500;

/**
 * Replaces the unverified room version, which an invite claimed, with the version that a resident server names when
 * this server enters the room. Deletes the outliers that failed joins stored with another version. Out-of-band
 * memberships stay, because each has its own version.
 * @param head must have no pending writes
 * @throws MatrixError M_FORBIDDEN for a room that this server has entered with another version
 */
export async function correctRoomVersion(
  { database, events }: { readonly database: Database; readonly events: EventStore },
  head: WritableHead,
  version: RoomVersion,
): Promise<void> {
  if (head.version === version) return;
  if (head.isEntered) throw forbidden('The room has another version');
  const { roomNid } = head;
  for (;;) {
    const nids = await outlierNids(database, roomNid);
    if (nids.length === 0) break;
    await database.transaction<RoomTables, void>(async (writer) => {
      await writer.deleteFrom('event_auth').where('event_nid', 'in', nids).execute();
      await writer.deleteFrom('events').where('nid', 'in', nids).execute();
    });
    for (const nid of nids) {
      const stored = events.peek(nid);
      if (stored) events.forget(stored);
    }
  }
  await database.transaction<RoomTables, void>(async (writer) => {
    await writer.updateTable('rooms').set({ version: version.id }).where('room_nid', '=', roomNid).execute();
  });
  head.correctVersion(version);
}

async function outlierNids(database: Database, roomNid: number): Promise<number[]> {
  const rows = await database
    .reader<RoomTables>()
    .selectFrom('events')
    .select('nid')
    .where('room_nid', '=', roomNid)
    .where('stream', 'is', null)
    .limit(maxDeletedTogether)
    .execute();
  return rows.map(({ nid }) => nid);
}
