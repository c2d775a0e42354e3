import type { DirectoryTables } from '../../directory/index.ts';
import type { Database } from '../../kernel/database/index.ts';

/** Inserts a room into the table of rooms, as the directory does some time after the room has changed. */
export async function insertRoomRow(
  database: Database,
  fields: Pick<DirectoryTables['room_stats'], 'room_id'> & Partial<DirectoryTables['room_stats']>,
): Promise<void> {
  await database.transaction<DirectoryTables, void>(async (writer) => {
    await writer
      .insertInto('room_stats')
      .values({
        room_nid: 1,
        name: null,
        topic: null,
        canonical_alias: null,
        avatar_url: null,
        join_rule: 'invite',
        history_visibility: 'shared',
        guest_can_join: 0,
        room_type: null,
        encryption: null,
        version: '12',
        creator: '@anna:test',
        federatable: 1,
        joined_members: 1,
        joined_local_members: 1,
        invited_members: 0,
        state_events: 6,
        search_text: '',
        ...fields,
      })
      .execute();
  });
}
