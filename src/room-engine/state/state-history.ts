import type { Reader } from '../../kernel/database/index.ts';
import type { StoredEvent } from '../stored-event.ts';
import type { RoomTables } from '../tables.ts';
import type { EventStore } from '../timeline/event-store.ts';

/** How one entry of a room's current state has changed. */
export interface StateHistoryEntry {
  /** Where on the stream it changed. */
  readonly stream: number;
  /** `undefined`: it was removed. */
  readonly event: StoredEvent | undefined;
}

/** All values that an entry of the current state has had, oldest first. */
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
  const found = await events.getMany(rows.map((row) => row.event_nid).filter((nid) => nid !== null));
  return rows.map((row) => ({
    stream: row.stream,
    event: row.event_nid === null ? undefined : found.get(row.event_nid),
  }));
}

/** A change of an entry of the current state in a range of the stream; of several only the last. */
export interface StateDelta {
  readonly keyNid: number;
  readonly eventNid: number | undefined;
  /** All events that the entry has had in the range, the last one included. */
  readonly passing: readonly number[];
}

/** What changed of a room's current state in `(after, upTo]`. */
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
    passing: changes.map(({ event_nid }) => event_nid).filter((nid) => nid !== null),
  }));
}
