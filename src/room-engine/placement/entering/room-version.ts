import type { Database } from '../../../kernel/database/index.ts';
import { forbidden, type RoomVersion } from '../../../protocol/index.ts';
import type { RoomTables } from '../../tables.ts';
import type { EventStore } from '../../timeline/event-store.ts';
import type { WritableHead } from '../../timeline/writable-head.ts';

/** Events that are deleted together. */
const deletedTogether = 500;

/**
 * Sees to it that a room is of a version. Of a room that this server has not been in, others have only spoken: the one
 * by whose help it is entered is right, and what an attempt with another version has left is not worth anything. What
 * users are to the room stays: that has versions of its own.
 * @param head nothing is being written to it
 * @throws MatrixError M_FORBIDDEN for a room whose version is known
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
    .limit(deletedTogether)
    .execute();
  return rows.map(({ nid }) => nid);
}
