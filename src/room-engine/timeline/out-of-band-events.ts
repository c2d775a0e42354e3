import type { Reader } from '../../kernel/database/index.ts';
import type { RoomTables } from '../tables.ts';
import type { OutOfBandRow } from './event-row.ts';

/** Maximum number of nids (numbers of events in the database) in one query. */
const maxNids = 200;

/** A server that invited a user to a room that this server is not in, or that received the user's knock. */
export interface OutOfBandServer {
  /** nid of the newest invite that the server sent, or of the newest knock that it received. */
  readonly nid: number;
  readonly server: string;
}

/** Reads out-of-band events (rows of `outside_events`) by nid; events that are not stored are absent. */
export async function readOutOfBandByNids(
  reader: Reader<RoomTables>,
  nids: readonly number[],
): Promise<OutOfBandRow[]> {
  const rows: OutOfBandRow[] = [];
  for (let start = 0; start < nids.length; start += maxNids) {
    const part = nids.slice(start, start + maxNids);
    rows.push(...(await reader.selectFrom('outside_events').selectAll().where('nid', 'in', part).execute()));
  }
  return rows;
}

/** Reads an out-of-band event of a room by its event id; `undefined` when it is not stored. */
export function readOutOfBandById(
  reader: Reader<RoomTables>,
  roomNid: number,
  eventId: string,
): Promise<OutOfBandRow | undefined> {
  const query = reader.selectFrom('outside_events').selectAll();
  return query.where('room_nid', '=', roomNid).where('event_id', '=', eventId).executeTakeFirst();
}

/** Reads the out-of-band events that were stored in `(after, upTo]` of the stream, in that order. */
export function readOutOfBandBetween(
  reader: Reader<RoomTables>,
  after: number,
  upTo: number,
): Promise<OutOfBandRow[]> {
  const query = reader.selectFrom('outside_events').selectAll();
  // The nid of an out-of-band event is its position on the stream.
  return query.where('nid', '>', after).where('nid', '<=', upTo).orderBy('nid').execute();
}

/**
 * Reads the servers that invited a user to a room or received the user's knock. The server of the newest event
 * comes first.
 */
export async function readOutOfBandServers(
  reader: Reader<RoomTables>,
  roomNid: number,
  userId: string,
  limit: number,
): Promise<OutOfBandServer[]> {
  const query = reader
    .selectFrom('outside_events')
    .select(({ fn }) => ['server', fn.max('nid').as('newest')]);
  const rows = await query
    .where('room_nid', '=', roomNid)
    .where('user_id', '=', userId)
    .where('server', '<>', '')
    .groupBy('server')
    .orderBy('newest', 'desc')
    .limit(limit)
    .execute();
  return rows.map(({ server, newest }) => ({ server, nid: Number(newest) }));
}
