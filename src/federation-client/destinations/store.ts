import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { Spelling } from '../spelling.ts';
import type { DestinationTables } from './tables.ts';

/** What is known about a server. Times in milliseconds since the epoch. */
export interface Destination {
  /** Since when it can not be reached. */
  readonly failureSince: number | undefined;
  /** When it was tried last, and for how many milliseconds it is left alone after that; 0 while it can be reached. */
  readonly retryLastTs: number;
  readonly retryInterval: number;
  readonly spelling: Spelling | undefined;
}

const newDestination: Destination = {
  failureSince: undefined,
  retryLastTs: 0,
  retryInterval: 0,
  spelling: undefined,
};

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
