import type { Database, Reader } from '../../kernel/database/index.ts';
import { canonicalJson } from '../../protocol/index.ts';
import { EventFlag, type RoomTables, type StoredEvent, type VerifiedEvent } from '../../room-engine/index.ts';

/** Maximum number of ids in one query. */
const idsPerQuery = 500;

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
    const known = new Map<string, KnownEvent>();
    const ids = [...new Set(eventIds)].filter((id) => !id.includes('\0') && id.isWellFormed());
    for (let start = 0; start < ids.length; start += idsPerQuery) {
      const rows = await this.#reader
        .selectFrom('events')
        .select(['nid', 'event_id', 'room_nid', 'flags'])
        .where('event_id', 'in', ids.slice(start, start + idsPerQuery))
        .execute();
      for (const row of rows) {
        known.set(row.event_id, {
          nid: row.nid,
          roomNid: row.room_nid,
          rejected: (row.flags & EventFlag.rejected) !== 0,
        });
      }
    }
    return known;
  }
}

/**
 * Whether the state after a stored event is known. It is for events that were placed, also for those that were rejected
 * or soft-failed then, and not for outliers.
 */
export const hasState = ({ stateGroup }: StoredEvent) => stateGroup !== undefined;

/** Returns a stored event as a verified event: it was verified before it was stored. */
export function asVerified({ event }: StoredEvent): VerifiedEvent {
  return { event, json: canonicalJson(event.pdu, 'as written') };
}
