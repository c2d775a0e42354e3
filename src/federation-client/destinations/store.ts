import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { Spelling } from '../spelling.ts';
import type { DestinationTables } from './tables.ts';

/** Facts about a server. Times in milliseconds since the epoch. */
export interface Destination {
  /** Since when the server is unreachable. */
  readonly failureSince: number | undefined;
  /** Time of the last recorded failure; 0 while the server is reachable. */
  readonly retryLastTs: number;
  /** Milliseconds of backoff after that failure; 0 while the server is reachable. */
  readonly retryInterval: number;
  readonly spelling: Spelling | undefined;
}

const newDestination: Destination = {
  failureSince: undefined,
  retryLastTs: 0,
  retryInterval: 0,
  spelling: undefined,
};

/** Returns the facts about a server; defaults for a server without a row. */
export async function readDestination(
  reader: Reader<DestinationTables>,
  serverName: string,
): Promise<Destination> {
  const row = await reader
    .selectFrom('destinations')
    .selectAll()
    .where('server_name', '=', serverName)
    .executeTakeFirst();
  if (row === undefined) return newDestination;
  return {
    failureSince: row.failure_since ?? undefined,
    retryLastTs: row.retry_last_ts,
    retryInterval: row.retry_interval,
    spelling: row.spelling === 'documents' || row.spelling === 'ecosystem' ? row.spelling : undefined,
  };
}

/** Maximum number of server names in one statement. */
const namesPerStatement = 1_000;

/** Returns those of the servers that have ever answered a request with success: their `spelling` is known. */
export async function readAnswering(
  reader: Reader<DestinationTables>,
  serverNames: readonly string[],
): Promise<ReadonlySet<string>> {
  const answering = new Set<string>();
  for (let start = 0; start < serverNames.length; start += namesPerStatement) {
    const rows = await reader
      .selectFrom('destinations')
      .select('server_name')
      .where('server_name', 'in', serverNames.slice(start, start + namesPerStatement))
      .where('spelling', 'is not', null)
      .execute();
    for (const { server_name: serverName } of rows) answering.add(serverName);
  }
  return answering;
}

/** Stores the facts about a server in place of the stored facts. */
export async function writeDestination(
  writer: Writer<DestinationTables>,
  serverName: string,
  destination: Destination,
): Promise<void> {
  const values = {
    failure_since: destination.failureSince ?? null,
    retry_last_ts: destination.retryLastTs,
    retry_interval: destination.retryInterval,
    spelling: destination.spelling ?? null,
  };
  await writer
    .insertInto('destinations')
    .values({ server_name: serverName, ...values })
    .onConflict((conflict) => conflict.column('server_name').doUpdateSet(values))
    .execute();
}

/**
 * Deletes servers that have never answered, and whose backoff ended before a time in milliseconds since the epoch.
 * @param limit maximum number of servers that are deleted
 * @returns their number
 */
export function deleteUnansweringBefore(
  writer: Writer<DestinationTables>,
  before: number,
  limit: number,
): Promise<number> {
  const ended = unanswering(writer).where(({ eb }) =>
    eb(eb('retry_last_ts', '+', eb.ref('retry_interval')), '<', before),
  );
  return deleteServers(writer, ended.limit(limit));
}

/**
 * Deletes servers that have never answered, except the `max` ones whose last failures are the newest.
 * @param limit maximum number of servers that are deleted
 * @returns their number
 */
export function deleteOldestUnanswering(
  writer: Writer<DestinationTables>,
  max: number,
  limit: number,
): Promise<number> {
  const newestFirst = unanswering(writer).orderBy('retry_last_ts', 'desc').orderBy('server_name');
  return deleteServers(writer, newestFirst.limit(limit).offset(max));
}

const unanswering = (writer: Writer<DestinationTables>) =>
  writer.selectFrom('destinations').select('server_name').where('spelling', 'is', null);

async function deleteServers(
  writer: Writer<DestinationTables>,
  names: ReturnType<typeof unanswering>,
): Promise<number> {
  const deleted = await writer.deleteFrom('destinations').where('server_name', 'in', names).execute();
  return Number(deleted[0]?.numDeletedRows ?? 0);
}
