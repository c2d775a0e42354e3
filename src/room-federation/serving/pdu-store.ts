import type { Database, Reader } from '../../kernel/database/index.ts';
import { redactEvent } from '../../protocol/index.ts';
import { EventFlag, eventColumns, type RoomTables, storedEventOf } from '../../room-engine/index.ts';

/** Maximum number of nids in one query. */
const nidsPerQuery = 500;

/** Number of nids in the first query, whose events may all have the maximum size: 6 MB together. */
const nidsInFirstQuery = 100;

/**
 * Maximum number of characters that the events of one query probably have, judged by the events of the previous query.
 * The events of one query are sent together.
 */
const maxCharacters = 2_097_152;

/** Reads PDUs as JSON text. Only events that are to be redacted are parsed. */
export class PduStore {
  readonly #scanner: Reader<RoomTables>;

  constructor(database: Database) {
    this.#scanner = database.scanner<RoomTables>();
  }

  /**
   * Reads the JSON of events by nid, in the order of `nids`, at most 500 at a time, and fewer where they are long.
   * Leaves out rejected events and events that are not on disk yet; redacted events are returned in redacted form.
   * @param hidden nids of further events to return in redacted form
   */
  async *read(nids: readonly number[], hidden?: ReadonlySet<number>): AsyncGenerator<readonly string[]> {
    let count = nidsInFirstQuery;
    for (let start = 0; start < nids.length; ) {
      const wanted = nids.slice(start, start + count);
      start += wanted.length;
      const jsonByNid = await this.#jsonByNid(wanted, hidden);
      yield wanted.map((nid) => jsonByNid.get(nid)).filter((json) => json !== undefined);
      const characters = jsonByNid.values().reduce((sum, json) => sum + json.length, 0);
      const fitting = Math.floor((wanted.length * maxCharacters) / Math.max(1, characters));
      count = Math.max(1, Math.min(fitting, nidsPerQuery));
    }
  }

  /** Returns the ids of the events that `read` would yield for these nids, in the same order. */
  async eventIds(nids: readonly number[]): Promise<string[]> {
    const ids: string[] = [];
    for (let start = 0; start < nids.length; start += nidsPerQuery) {
      const wanted = nids.slice(start, start + nidsPerQuery);
      const rows = await this.#scanner
        .selectFrom('events')
        .select(['nid', 'event_id', 'flags'])
        .where('nid', 'in', wanted)
        .execute();
      const idsByNid = new Map(rows.filter(isNotRejected).map((row) => [row.nid, row.event_id]));
      for (const nid of wanted) {
        const eventId = idsByNid.get(nid);
        if (eventId !== undefined) ids.push(eventId);
      }
    }
    return ids;
  }

  async #jsonByNid(
    nids: readonly number[],
    hidden: ReadonlySet<number> | undefined,
  ): Promise<Map<number, string>> {
    const rows = await this.#scanner
      .selectFrom('events')
      .innerJoin('rooms', 'rooms.room_nid', 'events.room_nid')
      .select(eventColumns)
      .where('events.nid', 'in', nids)
      .execute();
    const jsonByNid = new Map<number, string>();
    for (const row of rows) {
      if (!isNotRejected(row)) continue;
      const isRedacted = row.redacted_by !== null || hidden?.has(row.nid) === true;
      jsonByNid.set(row.nid, isRedacted ? redactEvent(storedEventOf(row).event).json : row.json);
    }
    return jsonByNid;
  }
}

const isNotRejected = ({ flags }: { flags: number }) => (flags & EventFlag.rejected) === 0;
