import type { Database } from '../../kernel/database/index.ts';
import { type JsonValue, parseJson, parseStrippedState, type StrippedState } from '../../protocol/index.ts';
import type { RoomTables } from '../../room-engine/index.ts';

/** What a user was shown of a room by another server, with an invite or a knock. */
export async function storedStrippedState(
  database: Database,
  roomId: string,
  userId: string,
): Promise<readonly StrippedState[]> {
  const row = await database
    .reader<RoomTables>()
    .selectFrom('stripped_state')
    .innerJoin('rooms', 'rooms.room_nid', 'stripped_state.room_nid')
    .select('json')
    .where('rooms.room_id', '=', roomId)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  if (!row) return [];
  const entries = parseJson(row.json) as readonly JsonValue[];
  return entries.flatMap((entry) => parseStrippedState(entry) ?? []);
}
