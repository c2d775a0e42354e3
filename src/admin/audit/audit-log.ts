import { type RawBuilder, sql } from 'kysely';
import type { Clock } from '../../kernel/clock.ts';
import type { Database, Writer } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { withoutNul } from '../paging/contains.ts';
import { countRows } from '../paging/read-page.ts';
import type { AuditTables } from './tables.ts';

/** A request to the admin API, or a request to the client API that used a right of administrators. */
export interface AuditEntry {
  /**
   * The user id of the administrator, or of another user who was refused; `<registration_shared_secret>` for a
   * registration with that secret.
   */
  readonly administrator: string;
  readonly method: string;
  /** The path of the route, with the names of its parameters: `/_server/admin/v1/deactivate/{userId}`. */
  readonly path: string;
  /** The `operationId` of the route; for a route without one, its method and path. */
  readonly operation: string;
  /**
   * The values of the path parameters, with secrets masked, and the `user_id` of the body, separated by spaces; null
   * without these.
   */
  readonly target: string | null;
  /** HTTP status of the response. */
  readonly status: number;
  /** Address of the client. */
  readonly ip: string;
}

/** A stored entry. Times are milliseconds since the epoch. */
export interface StoredAuditEntry extends AuditEntry {
  readonly id: number;
  readonly ts: number;
  /** The number of equal requests that the entry stands for: the first was at `ts`, the last at `last_ts`. */
  readonly requests: number;
  readonly last_ts: number;
}

/**
 * The filters of a list of entries. Absent filters select all entries. Times are milliseconds since the
 * epoch.
 */
export interface AuditFilter {
  readonly administrator?: string | undefined;
  readonly method?: string | undefined;
  readonly operation?: string | undefined;
  /** One of the values in the target. */
  readonly target?: string | undefined;
  readonly status?: number | undefined;
  readonly ip?: string | undefined;
  /** True: only requests that may have changed something. False: only requests that read, or were answered with 403. */
  readonly changes?: boolean | undefined;
  /** Only requests at or after this time. */
  readonly from?: number | undefined;
  /** Only requests before this time. */
  readonly until?: number | undefined;
}

const hour = 3_600_000;
const day = 24 * hour;

/**
 * Maximum age of entries in milliseconds, and maximum number of entries. Changes and reads are counted separately, so
 * that frequent reads do not displace entries about changes.
 */
const bounds = { maxAge: 365 * day, maxEntries: 100_000 };

/** Maximum number of characters of a target. */
const maxTarget = 1_000;

/** Maximum number of entries that one transaction writes. */
const writtenAtOnce = 100;

/** Maximum number of entries that one transaction deletes. */
const deletedAtOnce = 10_000;

/** Maximum number of entries kept in memory to count equal requests in them. */
const maxRepeated = 1_000;

type Row = Omit<AuditTables['audit_log'], 'id'> & { id?: number };

export interface AuditLogDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly jobs: Jobs;
}

/** Stores, lists and deletes entries about requests with the rights of administrators. */
export class AuditLog {
  readonly #deps: AuditLogDeps;
  readonly #pending = new Set<Row>();
  /** Entries of the last hour in which equal requests are counted, by the fields in which the requests are equal. */
  readonly #repeated = new Map<string, Row>();
  #writing: Promise<void> | undefined;

  constructor(deps: AuditLogDeps) {
    this.#deps = deps;
    deps.jobs.every('admin/trim-audit-log', hour, { run: () => this.trim() });
  }

  /**
   * Stores a request. Requests that change nothing and are equal to one of the last hour are counted in its entry,
   * because the console requests live figures every few seconds. Never rejects: the request has been handled, so a
   * failure to store its entry is logged only.
   */
  record({ target, ...entry }: AuditEntry): Promise<void> {
    const ts = this.#deps.clock.now();
    const row: Row = {
      ...entry,
      ts,
      target: target === null ? null : withoutNul(target).slice(0, maxTarget),
      is_change: entry.method === 'GET' || entry.status === 403 ? 0 : 1,
      requests: 1,
      last_ts: ts,
    };
    this.#pending.add(row.is_change === 1 ? row : this.#countedIn(row));
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  /** Reads entries, the newest first unless `oldestFirst`. @param after id of the last entry of the previous page */
  async page(
    filter: AuditFilter,
    { after, limit, oldestFirst }: { after: number | undefined; limit: number; oldestFirst: boolean },
  ): Promise<StoredAuditEntry[]> {
    let query = this.#filtered(filter)
      .selectAll()
      .orderBy('id', oldestFirst ? 'asc' : 'desc')
      .limit(limit);
    if (after !== undefined) query = query.where('id', oldestFirst ? '>' : '<', after);
    return query.execute();
  }

  /** Counts the entries that the filter selects. */
  count(filter: AuditFilter): Promise<number> {
    return countRows(this.#filtered(filter));
  }

  /**
   * Deletes the entries that exceed the maximum age or the maximum numbers.
   * @param limits other than the default in tests only
   */
  async trim(limits = bounds): Promise<void> {
    const oldest = this.#deps.clock.now() - limits.maxAge;
    await this.#delete(sql`ts < ${oldest}`);
    for (const isChange of [0, 1]) {
      const last = await this.#deps.database
        .scanner<AuditTables>()
        .selectFrom('audit_log')
        .select('id')
        .where('is_change', '=', isChange)
        .orderBy('id', 'desc')
        .offset(limits.maxEntries)
        .limit(1)
        .executeTakeFirst();
      if (last) await this.#delete(sql`is_change = ${isChange} and id <= ${last.id}`);
    }
  }

  /** Deletes entries in transactions of a bounded size. */
  async #delete(condition: RawBuilder<unknown>): Promise<void> {
    const { database } = this.#deps;
    for (let deleted = deletedAtOnce; deleted === deletedAtOnce; ) {
      deleted = await database.transaction<AuditTables, number>(async (writer) => {
        const { numDeletedRows } = await writer
          .deleteFrom('audit_log')
          .where('id', 'in', (select) =>
            select
              .selectFrom('audit_log')
              .select('id')
              .where(sql<boolean>`${condition}`)
              .limit(deletedAtOnce),
          )
          .executeTakeFirstOrThrow();
        return Number(numDeletedRows);
      });
    }
  }

  /**
   * Counts a request in the entry of an equal request of the last hour. @returns that entry; `row` when there is none
   */
  #countedIn(row: Row): Row {
    const { administrator, method, operation, target, status, ip } = row;
    const key = JSON.stringify([administrator, method, operation, target, status, ip]);
    const known = this.#repeated.get(key);
    if (known && row.ts - known.ts < hour) {
      known.requests += 1;
      known.last_ts = row.ts;
      return known;
    }
    this.#repeated.delete(key);
    this.#repeated.set(key, row);
    const [oldest] = this.#repeated.keys();
    if (this.#repeated.size > maxRepeated) this.#repeated.delete(oldest!);
    return row;
  }

  /** Stores the pending entries, also entries that are added before all are stored. */
  async #write(): Promise<void> {
    while (this.#pending.size > 0) {
      const rows = [...this.#pending].slice(0, writtenAtOnce);
      for (const row of rows) this.#pending.delete(row);
      try {
        const ids = await this.#deps.database.transaction<AuditTables, number[]>(async (writer) => {
          const stored: number[] = [];
          for (const row of rows) stored.push(await store(writer, row));
          return stored;
        });
        for (const [index, row] of rows.entries()) row.id = ids[index]!;
      } catch (error) {
        this.#deps.log.error({ err: error, entries: rows.length }, 'The audit log could not be written');
      }
    }
  }

  #filtered(filter: AuditFilter) {
    let query = this.#deps.database.scanner<AuditTables>().selectFrom('audit_log');
    const { administrator, method, operation, ip } = filter;
    if (administrator !== undefined) query = query.where('administrator', '=', withoutNul(administrator));
    if (method !== undefined) query = query.where('method', '=', withoutNul(method));
    if (operation !== undefined) query = query.where('operation', '=', withoutNul(operation));
    if (ip !== undefined) query = query.where('ip', '=', withoutNul(ip));
    const { target, status, changes, from, until } = filter;
    if (target !== undefined) query = query.where(hasTarget(withoutNul(target)));
    if (status !== undefined) query = query.where('status', '=', status);
    if (changes !== undefined) query = query.where('is_change', '=', changes ? 1 : 0);
    if (from !== undefined) query = query.where('ts', '>=', from);
    if (until !== undefined) query = query.where('ts', '<', until);
    return query;
  }
}

/** Inserts an entry, or updates one that was stored before. @returns its id */
async function store(writer: Writer<AuditTables>, { id, ...row }: Row): Promise<number> {
  if (id === undefined) {
    return (await writer.insertInto('audit_log').values(row).returning('id').executeTakeFirstOrThrow()).id;
  }
  const { requests, last_ts } = row;
  await writer.updateTable('audit_log').set({ requests, last_ts }).where('id', '=', id).execute();
  return id;
}

/** Whether a text is one of the targets of an entry. Distinguishes case on both databases, unlike `like` on SQLite. */
const hasTarget = (target: string): RawBuilder<boolean> =>
  sql<boolean>`replace(' ' || target || ' ', ${` ${target} `}, '') <> ' ' || target || ' '`;
