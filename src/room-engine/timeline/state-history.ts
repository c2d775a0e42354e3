import type { Reader } from '../../kernel/database/index.ts';
import type { StoredEvent } from '../stored-event.ts';
import type { RoomTables } from '../tables.ts';
import type { EventStore } from './event-store.ts';

/** A former or current value of an entry of a room's current state. */
export interface StateHistoryEntry {
  /** Position on the stream at which the entry changed. */
  readonly stream: number;
  /** `undefined` where the entry was removed. */
  readonly event: StoredEvent | undefined;
}

/** Reads all values that an entry of the current state has had, from the first to the current value. */
export async function stateHistory(
  reader: Reader<RoomTables>,
  events: EventStore,
  roomNid: number,
  keyNid: number,
): Promise<StateHistoryEntry[]> {
  const rows = await reader
    .selectFrom('state_deltas')
    .select(['stream', 'event_nid'])
    .where('room_nid', '=', roomNid)
    .where('key_nid', '=', keyNid)
    .orderBy('stream')
    .execute();
  const eventsByNid = await events.getMany(rows.map((row) => row.event_nid).filter((nid) => nid !== null));
  return rows.map((row) => ({
    stream: row.stream,
    event: row.event_nid === null ? undefined : eventsByNid.get(row.event_nid),
  }));
}

/** The last change of an entry of the current state in a range of the stream. */
export interface StateDelta {
  readonly keyNid: number;
  /** nid of the new event; `undefined` where the entry was removed. */
  readonly eventNid: number | undefined;
  /** nids of all events that the entry has had in the range, including `eventNid`. */
  readonly allEventNids: readonly number[];
}

/** Reads the last change of each entry of a room's current state that changed in `(after, upTo]` of the stream. */
export async function stateDeltas(
  reader: Reader<RoomTables>,
  roomNid: number,
  after: number,
  upTo: number,
): Promise<StateDelta[]> {
  const rows = await reader
    .selectFrom('state_deltas')
    .select(['key_nid', 'event_nid'])
    .where('room_nid', '=', roomNid)
    .where('stream', '>', after)
    .where('stream', '<=', upTo)
    .orderBy('stream')
    .execute();
  return [...Map.groupBy(rows, ({ key_nid }) => key_nid)].map(([keyNid, changes]) => ({
    keyNid,
    eventNid: changes.at(-1)?.event_nid ?? undefined,
    allEventNids: changes.map(({ event_nid }) => event_nid).filter((nid) => nid !== null),
  }));
}
