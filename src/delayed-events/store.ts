import { sql } from 'kysely';
import type { Reader, Writer } from '../kernel/database/index.ts';
import { type DelayedEvent, type Finalised, toDelayedEvent } from './delayed-event.ts';
import type { DelayedEventTables } from './tables.ts';

export type NewDelayedEvent = Omit<DelayedEvent, 'finalised'> & {
  /** Identifies the request that schedules the event, so that a repeated request is recognized. */
  readonly request: string | undefined;
};

export async function insertDelayedEvent(
  writer: Writer<DelayedEventTables>,
  event: NewDelayedEvent,
): Promise<void> {
  await writer
    .insertInto('delayed_events')
    .values({
      delay_id: event.delayId,
      user_id: event.userId,
      request: event.request ?? null,
      room_id: event.roomId,
      type: event.type,
      state_key: event.stateKey ?? null,
      content: JSON.stringify(event.content),
      delay: event.delay,
      since_ts: event.since,
      finalised_ts: null,
      outcome: null,
      reason: null,
      event_id: null,
      error: null,
    })
    .execute();
}

export async function readDelayedEvent(
  reader: Reader<DelayedEventTables>,
  key: { readonly delayId: string } | { readonly request: string },
): Promise<DelayedEvent | undefined> {
  const query = reader.selectFrom('delayed_events').selectAll();
  const row = await ('delayId' in key
    ? query.where('delay_id', '=', key.delayId)
    : query.where('request', '=', key.request)
  ).executeTakeFirst();
  return row && toDelayedEvent(row);
}

const eventsOf = (reader: Reader<DelayedEventTables>, userId: string) =>
  reader.selectFrom('delayed_events').selectAll().where('user_id', '=', userId);

/** Reads the scheduled events of a user, in the order of their sending times. */
export async function readScheduledEventsOf(
  reader: Reader<DelayedEventTables>,
  userId: string,
  limit: number,
): Promise<DelayedEvent[]> {
  const rows = await eventsOf(reader, userId)
    .where('finalised_ts', 'is', null)
    .orderBy((eb) => eb('since_ts', '+', eb.ref('delay')))
    .orderBy('delay_id')
    .limit(limit)
    .execute();
  return rows.map(toDelayedEvent);
}

/** Totals of the scheduled events of a user. */
export interface ScheduledTotals {
  readonly count: number;
  /** Characters of the contents of these events as JSON and of their state keys, all together. */
  readonly length: number;
  /** When the first of these events is due, in milliseconds since the epoch; `undefined` when none is scheduled. */
  readonly nextAt: number | undefined;
}

export async function readScheduledTotals(
  reader: Reader<DelayedEventTables>,
  userId: string,
): Promise<ScheduledTotals> {
  const { count, length, nextAt } = await reader
    .selectFrom('delayed_events')
    .select([
      sql<number | string>`count(*)`.as('count'),
      sql<number | string | null>`sum(length(content) + coalesce(length(state_key), 0))`.as('length'),
      sql<number | string | null>`min(since_ts + delay)`.as('nextAt'),
    ])
    .where('user_id', '=', userId)
    .where('finalised_ts', 'is', null)
    .executeTakeFirstOrThrow();
  return {
    count: Number(count),
    length: Number(length ?? 0),
    nextAt: nextAt === null ? undefined : Number(nextAt),
  };
}

/** Number of ended events that are read at a time. */
const endedAtOnce = 20;

/**
 * Reads the delayed events of a user that were sent, cancelled or refused, the latest first.
 * @param maxLength characters of contents and state keys; the event that reaches this number is the last one
 */
export async function readEndedEventsOf(
  reader: Reader<DelayedEventTables>,
  userId: string,
  { limit, maxLength }: { readonly limit: number; readonly maxLength: number },
): Promise<DelayedEvent[]> {
  const ended: DelayedEvent[] = [];
  let length = 0;
  while (ended.length < limit) {
    const rows = await eventsOf(reader, userId)
      .where('finalised_ts', 'is not', null)
      .orderBy('finalised_ts', 'desc')
      .orderBy('delay_id')
      .limit(Math.min(endedAtOnce, limit - ended.length))
      .offset(ended.length)
      .execute();
    for (const row of rows) {
      ended.push(toDelayedEvent(row));
      length += row.content.length + (row.state_key?.length ?? 0);
      if (length >= maxLength) return ended;
    }
    if (rows.length < endedAtOnce) return ended;
  }
  return ended;
}

/** @returns whether the event was still scheduled */
export async function restartDelayedEvent(
  writer: Writer<DelayedEventTables>,
  delayId: string,
  since: number,
): Promise<boolean> {
  const { numUpdatedRows } = await writer
    .updateTable('delayed_events')
    .set({ since_ts: since })
    .where('delay_id', '=', delayId)
    .where('finalised_ts', 'is', null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** @returns whether the event was still scheduled */
export async function finaliseDelayedEvent(
  writer: Writer<DelayedEventTables>,
  delayId: string,
  { ts, outcome, reason, eventId, error }: Finalised,
): Promise<boolean> {
  const { numUpdatedRows } = await writer
    .updateTable('delayed_events')
    .set({
      finalised_ts: ts,
      outcome,
      reason,
      event_id: eventId ?? null,
      error: error === undefined ? null : JSON.stringify(error),
    })
    .where('delay_id', '=', delayId)
    .where('finalised_ts', 'is', null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Deletes delayed events that ended before a time. */
export async function deleteFinalised(writer: Writer<DelayedEventTables>, before: number): Promise<void> {
  await writer.deleteFrom('delayed_events').where('finalised_ts', '<', before).execute();
}
