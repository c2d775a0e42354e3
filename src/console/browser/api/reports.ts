/** Reports of events, rooms and users. */
import { nextOf, type Page, type PageRequest } from './lists.ts';
import { type Api, path } from './request.ts';

/** The kind of object that a report is about; part of the paths of the admin API. */
export type ReportKind = 'event' | 'room' | 'user';

/** A report. Its kind decides which of the optional fields it has. */
export interface Report {
  readonly id: number;
  readonly received_ts: number;
  /** The user who reported. */
  readonly user_id: string;
  readonly reason: string | null;
  readonly room_id?: string | null;
  /** Name of the room. */
  readonly name?: string | null;
  readonly event_id?: string | null;
  /** The sender of the reported event. */
  readonly sender?: string | null;
  readonly target_user_id?: string;
  /** The reported event, only in the details of a report. */
  readonly event_json?: Readonly<Record<string, unknown>>;
}

export async function listReports(
  api: Api,
  kind: ReportKind,
  page: PageRequest,
  signal: AbortSignal,
): Promise<Page<Report>> {
  const { from, limit } = page;
  const answer = await api.admin<Record<string, unknown>>('GET', `/v1/${kind}_reports`, {
    query: { from, limit },
    signal,
  });
  return {
    rows: answer[`${kind}_reports`] as Report[],
    total: Number(answer['total']),
    next: nextOf(answer['next_token'] as string | undefined),
  };
}

export const reportDetails = (api: Api, kind: ReportKind, id: string, signal: AbortSignal): Promise<Report> =>
  api.admin('GET', `/v1/${kind}_reports${path`/${id}`}`, { signal });

export const deleteReport = (api: Api, kind: ReportKind, id: number): Promise<unknown> =>
  api.admin('DELETE', `/v1/${kind}_reports${path`/${String(id)}`}`);

/** Removes the content of an event for all members of its room. @returns the user who has sent the redaction */
export async function redactEvent(
  api: Api,
  roomId: string,
  eventId: string,
  reason: string,
): Promise<string> {
  const body = reason === '' ? {} : { reason };
  const target = path`/v1/rooms/${roomId}/redact/${eventId}`;
  return (await api.admin<{ sender: string }>('POST', target, { body })).sender;
}
