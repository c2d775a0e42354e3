/** The whole server: live figures, figures of each day, options, jobs, notices and the audit log. */
import { nextOf, type Page } from './lists.ts';
import type { Api } from './request.ts';

export interface Overview {
  readonly server_name: string;
  readonly server_version: string;
  readonly node_version: string;
  readonly database: string;
  readonly now_ts: number;
  readonly started_ts: number;
  /** Counters since the start, and open requests. */
  readonly requests: {
    readonly answered: number;
    readonly federation: number;
    readonly syncs: number;
    readonly failed: number;
    readonly open: number;
    readonly open_syncs: number;
  };
  /** Counters since the start. */
  readonly events: { readonly local: number; readonly remote: number };
  readonly federation: {
    /** Number of servers by the state of their queue, for example `sending`. */
    readonly destinations: Readonly<Record<string, number>>;
    readonly pending_pdus: number;
    readonly pending_edus: number;
    readonly longest_wait_ms: number;
  };
  readonly process: {
    /** Counter since the start, as is `event_loop_busy_ms`. */
    readonly cpu_ms: number;
    readonly memory_bytes: number;
    readonly heap_bytes: number;
    readonly event_loop_busy_ms: number;
    /** Of the last seconds; `null` without a measurement. */
    readonly event_loop_lag_ms: { readonly mean: number | null; readonly max: number | null };
  };
}

export interface DayFigures {
  readonly day: string;
  readonly users: number;
  readonly active_users: number;
  readonly rooms: number;
  readonly messages: number;
  readonly local_messages: number;
  readonly media_bytes: number;
  readonly database_bytes: number;
}

export interface EffectiveOption {
  readonly name: string;
  readonly value: unknown;
  /** `derived`: from the environment or from another option. */
  readonly source: 'default' | 'file' | 'derived';
  readonly file?: string;
  readonly line?: number;
}

/** A background job. */
export interface Task {
  readonly id: string;
  readonly action: string;
  readonly status: 'scheduled' | 'active' | 'complete' | 'cancelled' | 'failed';
  readonly timestamp_ms: number;
  /** What the job is about, for example a room. */
  readonly resource_id: string | null;
  readonly error: string | null;
  readonly progress: { readonly done: number; readonly total: number | null } | null;
}

export interface AuditEntry {
  readonly id: number;
  readonly ts: number;
  readonly admin: string;
  readonly method: string;
  readonly path: string;
  readonly operation: string;
  readonly target: string | null;
  readonly status: number;
  readonly ip: string;
  /** The number of equal requests that the entry stands for: the first was at `ts`, the last at `last_ts`. */
  readonly requests: number;
  readonly last_ts: number;
}

export const readOverview = (api: Api, signal: AbortSignal): Promise<Overview> =>
  api.admin('GET', '/v1/overview', { signal });

/** @param from and to: days as `YYYY-MM-DD`, in UTC */
export async function readDays(
  api: Api,
  from: string,
  to: string,
  signal: AbortSignal,
): Promise<readonly DayFigures[]> {
  const query = { from_day: from, to_day: to };
  return (await api.admin<{ days: DayFigures[] }>('GET', '/v1/statistics/days', { query, signal })).days;
}

/** Returns the rooms that take most space in the database, with estimated bytes. */
export async function largestRooms(
  api: Api,
  signal: AbortSignal,
): Promise<readonly { readonly room_id: string; readonly estimated_size: number }[]> {
  type Answer = { rooms: { room_id: string; estimated_size: number }[] };
  return (await api.admin<Answer>('GET', '/v1/statistics/database/rooms', { signal })).rooms;
}

export async function readConfiguration(api: Api, signal: AbortSignal): Promise<readonly EffectiveOption[]> {
  const target = '/v1/effective_configuration';
  return (await api.admin<{ options: EffectiveOption[] }>('GET', target, { signal })).options;
}

/** Returns jobs, the newest first. */
export async function listTasks(
  api: Api,
  { status, limit }: { readonly status: string; readonly limit: number },
  signal: AbortSignal,
): Promise<readonly Task[]> {
  const target = '/v1/scheduled_tasks';
  const query = { status, limit, dir: 'b' };
  return (await api.admin<{ scheduled_tasks: Task[] }>('GET', target, { query, signal })).scheduled_tasks;
}

/** Returns the newest job of a kind about a resource, for example about the deletion of a room. */
export async function taskOf(
  api: Api,
  action: string,
  resourceId: string,
  signal: AbortSignal,
): Promise<Task | undefined> {
  const query = { action_name: action, resource_id: resourceId, limit: 1, dir: 'b' };
  const answer = await api.admin<{ scheduled_tasks: Task[] }>('GET', '/v1/scheduled_tasks', {
    query,
    signal,
  });
  return answer.scheduled_tasks[0];
}

export interface BackgroundUpdates {
  readonly enabled: boolean;
  /** The running updates by database. `total_item_count` is the number of rows that an update has changed. */
  readonly current_updates: Readonly<
    Record<string, { readonly name: string; readonly total_item_count: number }>
  >;
}

export const backgroundUpdates = (api: Api, signal: AbortSignal): Promise<BackgroundUpdates> =>
  api.admin('GET', '/v1/background_updates/status', { signal });

/** Continues or pauses background updates. @param enabled false pauses them */
export const enableBackgroundUpdates = (api: Api, enabled: boolean): Promise<unknown> =>
  api.admin('POST', '/v1/background_updates/enabled', { body: { enabled } });

export interface AuditFilter {
  readonly admin?: string;
  readonly target?: string;
  /** Leaves out requests that only read. */
  readonly changes?: boolean;
}

/** @param after id of the last entry of the previous page; empty for the first page */
export async function listAuditLog(
  api: Api,
  filter: AuditFilter,
  after: string,
  limit: number,
  signal: AbortSignal,
): Promise<Page<AuditEntry>> {
  const answer = await api.admin<{ entries: AuditEntry[]; total: number; next_token?: string }>(
    'GET',
    '/v1/audit_log',
    { query: { ...filter, from: after, limit }, signal },
  );
  return { rows: answer.entries, total: answer.total, next: nextOf(answer.next_token) };
}

/** Sends a notice to a user, in the room of server notices. */
export const sendNotice = (api: Api, userId: string, text: string): Promise<unknown> =>
  api.admin('POST', '/v1/send_server_notice', {
    body: { user_id: userId, content: { msgtype: 'm.text', body: text } },
  });

/** A notice that a job of the server sends to all users. */
export interface NoticeToAll {
  readonly id: string;
  readonly status: Task['status'];
  readonly total: number;
  readonly sent: number;
  readonly failed: number;
  /** Error messages of the first users to whom the notice could not be sent. */
  readonly failed_users: Readonly<Record<string, string>>;
  readonly error?: string;
}

const toAllPath = '/v1/send_server_notice_to_all';

/** Starts a job that sends a notice to all users, once for each transaction id. */
export const sendNoticeToAll = (api: Api, text: string, txnId: string): Promise<unknown> =>
  api.admin('POST', toAllPath, { body: { content: { msgtype: 'm.text', body: text }, txn_id: txnId } });

/** Stops the job that sends a notice to all users. */
export const cancelNoticeToAll = (api: Api, id: string): Promise<unknown> =>
  api.admin('DELETE', `${toAllPath}/${encodeURIComponent(id)}`);

/** Returns the newest notice to all users; null if none was sent in the last week. */
export async function newestNoticeToAll(api: Api, signal: AbortSignal): Promise<NoticeToAll | null> {
  const query = { action_name: 'server-notices/send-to-all', limit: 1, dir: 'b' };
  const target = '/v1/scheduled_tasks';
  const found = await api.admin<{ scheduled_tasks: Task[] }>('GET', target, { query, signal });
  const id = found.scheduled_tasks[0]?.resource_id;
  if (id === undefined || id === null) return null;
  const path = `${toAllPath}/${encodeURIComponent(id)}`;
  return { ...(await api.admin<Omit<NoticeToAll, 'id'>>('GET', path, { signal })), id };
}
