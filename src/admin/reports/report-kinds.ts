import type { TSchema } from 'typebox';
import type { Report } from '../../reports/index.ts';
import { integer, nullableInteger, nullableText, text } from '../response-fields.ts';

export type ReportKind = Report['kind'];

/** A report, with the name and the canonical alias of its room. */
export interface ListedReport {
  readonly id: number;
  /** Milliseconds since the epoch. */
  readonly received_ts: number;
  readonly reporter: string;
  /** Set for reports of events and rooms. */
  readonly room_id: string | null;
  readonly event_id: string | null;
  /** The sender of a reported event, or the reported user. */
  readonly user_id: string | null;
  readonly reason: string | null;
  /** From -100 (most offensive) to 0; only for reports of events. */
  readonly score: number | null;
  /** The name of the room. */
  readonly name: string | null;
  readonly canonical_alias: string | null;
}

/** A column that lists can be filtered by. */
export type FilterColumn = 'reporter' | 'room_id' | 'user_id';

/** Properties of the endpoints for one kind of reports. */
interface ReportEndpoints {
  /** Begins error messages, and is part of operation ids. */
  readonly title: string;
  /** The fields of the response. Each is mapped to the column that has its value. */
  readonly fields: Readonly<Record<string, keyof ListedReport>>;
  /** The query parameters. Each is mapped to the column that must have its value. */
  readonly filters: Readonly<Record<string, FilterColumn>>;
}

const commonFields = { id: 'id', received_ts: 'received_ts' } as const;
const roomFields = { room_id: 'room_id', name: 'name', canonical_alias: 'canonical_alias' } as const;

/** The kinds of reports, by the beginning of their paths. */
export const reportKinds: Readonly<Record<ReportKind, ReportEndpoints>> = {
  event: {
    title: 'Event',
    fields: {
      ...commonFields,
      ...roomFields,
      event_id: 'event_id',
      user_id: 'reporter',
      sender: 'user_id',
      reason: 'reason',
      score: 'score',
    },
    filters: { user_id: 'reporter', room_id: 'room_id', event_sender_user_id: 'user_id' },
  },
  room: {
    title: 'Room',
    fields: { ...commonFields, ...roomFields, user_id: 'reporter', reason: 'reason' },
    filters: { user_id: 'reporter', room_id: 'room_id' },
  },
  user: {
    title: 'User',
    fields: { ...commonFields, target_user_id: 'user_id', user_id: 'reporter', reason: 'reason' },
    filters: { user_id: 'reporter', target_user_id: 'user_id' },
  },
};

/** Schemas of the columns that are not nullable texts. */
const schemas: Readonly<Partial<Record<keyof ListedReport, TSchema>>> = {
  id: integer,
  received_ts: integer,
  reporter: text,
  score: nullableInteger,
};

/** Returns the schemas of the fields of a report. */
export const schemasOf = (kind: ReportKind): Record<string, TSchema> =>
  Object.fromEntries(
    Object.entries(reportKinds[kind].fields).map(([field, column]) => [
      field,
      schemas[column] ?? nullableText,
    ]),
  );

/** Returns a report for the response. */
export const reportJson = (kind: ReportKind, report: ListedReport): Record<string, string | number | null> =>
  Object.fromEntries(
    Object.entries(reportKinds[kind].fields).map(([field, column]) => [field, report[column]]),
  );
