import type { Database, Reader } from '../../kernel/database/index.ts';
import { canonicalJson } from '../../protocol/index.ts';
import { EventFlag, type RoomTables, type StoredEvent, type VerifiedEvent } from '../../room-engine/index.ts';

/** Maximum number of ids in one query. */
const chunk = 500;

/** The columns of a stored event that are read without its JSON. */
export interface KnownEvent {
  readonly nid: number;
  readonly roomNid: number;
  readonly rejected: boolean;
}

/** Looks up many events at once without reading their JSON: a state may have many thousands. */
export class KnownEvents {
  readonly #reader: Reader<RoomTables>;

  constructor(database: Database) {
    this.#reader = database.scanner<RoomTables>();
  }

  /** Returns the stored events by event id. */
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

/** Whether the event is placed: the state after it is known, even if it was rejected. Outliers have no state. */
export const hasState = ({ stateGroup }: StoredEvent) => stateGroup !== undefined;

/** A stored event as a verified one: it was verified before it was stored. */
export function asVerified({ event }: StoredEvent): VerifiedEvent {
  return { event, json: canonicalJson(event.pdu, 'as written') };
}
