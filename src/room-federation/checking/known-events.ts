import type { Database, Reader } from '../../kernel/database/index.ts';
import { EventFlag, type RoomTables } from '../../room-engine/index.ts';

/** Ids in one query. */
const chunk = 500;

/** What is known of an event, without the event itself. */
export interface KnownEvent {
  readonly nid: number;
  readonly roomNid: number;
  readonly rejected: boolean;
}

/** Looks up many events at once, without reading them: states have many thousands. */
export class KnownEvents {
  readonly #reader: Reader<RoomTables>;

  constructor(database: Database) {
    this.#reader = database.scanner<RoomTables>();
  }

  /** Those that are stored, by id. */
  async find(eventIds: Iterable<string>): Promise<Map<string, KnownEvent>> {
    const found = new Map<string, KnownEvent>();
    const ids = [...new Set(eventIds)].filter((id) => !id.includes('\0') && id.isWellFormed());
    for (let start = 0; start < ids.length; start += chunk) {
      const rows = await this.#reader
        .selectFrom('events')
        .select(['nid', 'event_id', 'room_nid', 'flags'])
        .where('event_id', 'in', ids.slice(start, start + chunk))
        .execute();
      for (const row of rows) {
        found.set(row.event_id, {
          nid: row.nid,
          roomNid: row.room_nid,
          rejected: (row.flags & EventFlag.rejected) !== 0,
        });
      }
    }
    return found;
  }
}
