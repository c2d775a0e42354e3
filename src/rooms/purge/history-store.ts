import type { Database, Writer } from '../../kernel/database/index.ts';
import type { HistoryPlace, RoomTables, StoredEvent } from '../../room-engine/index.ts';

/** A timeline event and its place in the history. */
export interface PlacedNid extends HistoryPlace {
  readonly nid: number;
}

/**
 * Reads timeline events whose depth is below `depth`, in the order of the room's history.
 * @param after the place of the last event that was read; null at the beginning
 */
export async function placedBelow(
  database: Database,
  roomNid: number,
  depth: number,
  after: HistoryPlace | null,
  limit: number,
): Promise<PlacedNid[]> {
  let query = database
    .scanner<RoomTables>()
    .selectFrom('events')
    .select(['nid', 'depth', 'stream'])
    .where('room_nid', '=', roomNid)
    .where('stream', 'is not', null)
    .where('depth', '<', depth)
    .orderBy('depth')
    .orderBy('stream')
    .limit(limit);
  if (after !== null) {
    query = query.where(({ eb, refTuple, tuple }) =>
      eb(refTuple('depth', 'stream'), '>', tuple(after.depth, after.stream)),
    );
  }
  return (await query.execute()).map(({ nid, depth: eventDepth, stream }) => ({
    nid,
    depth: eventDepth,
    stream: stream ?? 0,
  }));
}

/**
 * Reads the nids of rejected and soft-failed events with a depth below `depth`, in ascending order.
 * @param after the last nid that was read; 0 at the beginning
 */
export async function refusedBelow(
  database: Database,
  roomNid: number,
  depth: number,
  after: number,
  limit: number,
): Promise<number[]> {
  const rows = await database
    .scanner<RoomTables>()
    .selectFrom('events')
    .select('nid')
    .where('room_nid', '=', roomNid)
    .where('stream', 'is', null)
    .where('state_group', 'is not', null)
    .where('depth', '<', depth)
    .where('nid', '>', after)
    .orderBy('nid')
    .limit(limit)
    .execute();
  return rows.map(({ nid }) => nid);
}

/**
 * Returns the nids of the forward extremities on disk: the current extremities, and former extremities
 * (`former_extremities`).
 */
export async function storedExtremities(writer: Writer<RoomTables>, roomNid: number): Promise<Set<number>> {
  const row = await writer
    .selectFrom('rooms')
    .select(['extremities', 'former_extremities'])
    .where('room_nid', '=', roomNid)
    .executeTakeFirst();
  return new Set(
    [row?.extremities, row?.former_extremities].flatMap((json) => JSON.parse(json ?? '[]') as number[]),
  );
}

/**
 * Returns the nid of the newest timeline event whose `origin_server_ts` is before `ts` (milliseconds since the epoch).
 */
export async function newestBefore(
  database: Database,
  roomNid: number,
  ts: number,
): Promise<number | undefined> {
  const row = await database
    .reader<RoomTables>()
    .selectFrom('event_times')
    .select('nid')
    .where('room_nid', '=', roomNid)
    .where('ts', '<', ts)
    .orderBy('ts', 'desc')
    .orderBy('nid', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.nid;
}

/** Returns which of these event ids belong to stored events. */
export async function storedIds(database: Database, eventIds: readonly string[]): Promise<Set<string>> {
  const rows = await database
    .reader<RoomTables>()
    .selectFrom('events')
    .select('event_id')
    .where('event_id', 'in', eventIds)
    .execute();
  return new Set(rows.map(({ event_id }) => event_id));
}

/** Deletes message events, but not the rows that other slices store for them. */
export async function deleteEvents(
  writer: Writer<RoomTables>,
  roomNid: number,
  events: readonly StoredEvent[],
): Promise<void> {
  const nids = events.map(({ nid }) => nid);
  const times = events.map(({ event }) => event.originServerTs);
  await writer.deleteFrom('events').where('nid', 'in', nids).execute();
  await writer
    .deleteFrom('event_times')
    .where('room_nid', '=', roomNid)
    .where('ts', 'in', times)
    .where('nid', 'in', nids)
    .execute();
  await writer
    .deleteFrom('backward_extremities')
    .where('room_nid', '=', roomNid)
    .where('referenced_by', 'in', nids)
    .execute();
}

/**
 * Adds backward extremities, which are backfilled only when a client reads the history.
 * @param gaps ids of missing events, each with the nid of a stored event that refers to it
 */
export async function addGaps(
  writer: Writer<RoomTables>,
  roomNid: number,
  gaps: ReadonlyMap<string, number>,
): Promise<void> {
  await writer
    .insertInto('backward_extremities')
    .values(
      [...gaps].map(([eventId, referencedBy]) => ({
        room_nid: roomNid,
        event_id: eventId,
        backfills_left: null,
        referenced_by: referencedBy,
        attempts: 0,
        retry_ts: 0,
      })),
    )
    .onConflict((conflict) => conflict.columns(['room_nid', 'event_id']).doNothing())
    .execute();
}
