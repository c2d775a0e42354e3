import type { Reader } from '../../kernel/database/index.ts';
import type { Membership, StrippedState } from '../../protocol/index.ts';
import { type CompletedRoom, type PartialRoom, parsePartialState } from '../partial-state.ts';
import type { RoomTables } from '../tables.ts';
import type { OutOfBandMember } from './entering/out-of-band-members.ts';

/** Maximum number of ids in one query. */
const maxIds = 500;

/** Returns the ids of the events that are backward extremities of the room. */
export async function readBackwardExtremities(
  reader: Reader<RoomTables>,
  roomNid: number,
  eventIds: readonly string[],
): Promise<Set<string>> {
  const results = new Set<string>();
  for (let start = 0; start < eventIds.length; start += maxIds) {
    const rows = await reader
      .selectFrom('backward_extremities')
      .select('event_id')
      .where('room_nid', '=', roomNid)
      .where('event_id', 'in', eventIds.slice(start, start + maxIds))
      .execute();
    for (const row of rows) results.add(row.event_id);
  }
  return results;
}

/**
 * Reads all backward extremities of a room: event id to the number of backfill responses that may still be fetched
 * before this event in the background.
 */
export async function readAllBackwardExtremities(
  reader: Reader<RoomTables>,
  roomNid: number,
): Promise<Map<string, number>> {
  const rows = await reader
    .selectFrom('backward_extremities')
    .select(['event_id', 'backfills_left'])
    .where('room_nid', '=', roomNid)
    .execute();
  return new Map(rows.map((row) => [row.event_id, row.backfills_left ?? 0]));
}

/** Reads redactions that arrived before their targets: for each target at most `max`, those with the lowest nids. */
export async function readPendingRedactionsOf(
  reader: Reader<RoomTables>,
  targetIds: readonly string[],
  max: number,
): Promise<{ targetId: string; nid: number }[]> {
  const results: { targetId: string; nid: number }[] = [];
  for (let start = 0; start < targetIds.length; start += maxIds) {
    const numbered = reader
      .selectFrom('pending_redactions')
      .select(['target_id', 'redaction_nid'])
      .select(({ fn }) =>
        fn
          .agg<number>('row_number')
          .over((rows) => rows.partitionBy('target_id').orderBy('redaction_nid'))
          .as('number'),
      )
      .where('target_id', 'in', targetIds.slice(start, start + maxIds))
      .as('numbered');
    const rows = await reader
      .selectFrom(numbered)
      .select(['target_id', 'redaction_nid'])
      .where('number', '<=', max)
      .orderBy('redaction_nid')
      .execute();
    for (const row of rows) results.push({ targetId: row.target_id, nid: row.redaction_nid });
  }
  return results;
}

/** Reads the rooms whose partial state became complete after a position. */
export async function readRoomsCompletedSince(
  reader: Reader<RoomTables>,
  after: number,
): Promise<CompletedRoom[]> {
  const rows = await reader
    .selectFrom('rooms')
    .select(['room_id', 'room_nid', 'partial_state'])
    .where('partial_state', 'is not', null)
    .execute();
  return rows
    .filter((row) => parsePartialState(row.partial_state).completedAt > after)
    .map((row) => ({ roomId: row.room_id, roomNid: row.room_nid }));
}

/** Reads the rooms whose state is partial. */
export async function readPartialRooms(reader: Reader<RoomTables>): Promise<PartialRoom[]> {
  const rows = await reader
    .selectFrom('rooms')
    .select(['room_id', 'partial_state'])
    .where('partial_state', 'is not', null)
    .execute();
  const rooms: PartialRoom[] = [];
  for (const row of rows) {
    const { partial } = parsePartialState(row.partial_state);
    if (partial) rooms.push({ ...partial, roomId: row.room_id });
  }
  return rooms;
}

/**
 * Reads the stripped state that a remote server sent a user with an invite or a knock; `undefined` where there is none.
 */
export async function readStrippedState(
  reader: Reader<RoomTables>,
  roomNid: number,
  userId: string,
): Promise<readonly StrippedState[] | undefined> {
  const row = await reader
    .selectFrom('stripped_state')
    .select('json')
    .where('room_nid', '=', roomNid)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return row && (JSON.parse(row.json) as StrippedState[]);
}

/** Reads the local users with an out-of-band invite or knock in a room: stripped state is stored only for these. */
export async function readOutOfBandMembers(
  reader: Reader<RoomTables>,
  roomNid: number,
): Promise<OutOfBandMember[]> {
  const rows = await reader
    .selectFrom('stripped_state')
    .innerJoin('memberships', (join) =>
      join
        .onRef('memberships.user_id', '=', 'stripped_state.user_id')
        .onRef('memberships.room_nid', '=', 'stripped_state.room_nid'),
    )
    .select(['stripped_state.user_id', 'memberships.membership'])
    .where('stripped_state.room_nid', '=', roomNid)
    .execute();
  return rows.map((row) => ({ userId: row.user_id, membership: row.membership as Membership }));
}

/** Returns the nids of the events that were placed, rejected or soft-failed after a position, in the order of the stream. */
export async function readPlacedSince(
  reader: Reader<RoomTables>,
  roomNid: number,
  after: number,
): Promise<number[]> {
  const rows = await reader
    .selectFrom('events')
    .select(['nid', 'stream'])
    .where('room_nid', '=', roomNid)
    .where('state_group', 'is not', null)
    .where((where) =>
      where.or([
        where('stream', '>', after),
        where.and([where('stream', 'is', null), where('nid', '>', after)]),
      ]),
    )
    .execute();
  return rows.sort((a, b) => (a.stream ?? a.nid) - (b.stream ?? b.nid)).map(({ nid }) => nid);
}
