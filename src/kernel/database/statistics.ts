/** Counters since the start. */
export interface DatabaseStatistics {
  /** Statements through `reader()`. */
  reads: number;
  /** Statements through `scanner()`. */
  scans: number;
  /** Statements inside transactions, and executions (rows) of batches. */
  writes: number;
  /** Transactions begun, including retries. */
  transactions: number;
  batches: number;
  /** Commits that waited for the disk. */
  flushes: number;
  /** Bytes that were released to the file system. */
  releasedBytes: number;
  /** Rows that were moved to earlier pages of their tables, on PostgreSQL. */
  movedRows: number;
  readonly timings: DatabaseTimings;
}

/**
 * The kind of work whose duration is measured: a statement by its purpose, a commit, or the wait for a
 * connection (PostgreSQL) or the writer (SQLite).
 */
export type TimedPart = 'read' | 'scan' | 'write' | 'commit' | 'wait';

/** Connections of a pool. */
export interface PoolUse {
  readonly inUse: number;
  readonly idle: number;
  /** Tasks that wait for a connection or for the writer. */
  readonly waiting: number;
}

/** Durations and use of connections, which are measured only while metrics are enabled. */
export interface DatabaseTimings {
  /** Receives durations in milliseconds; absent: nothing is measured. */
  observe?: ((part: TimedPart, milliseconds: number) => void) | undefined;
  /** Returns the use of each pool by its name. */
  pools?: () => Readonly<Record<string, PoolUse>>;
}

/** Runs `work` and reports how long it took. */
export async function timed<T>(
  timings: DatabaseTimings,
  part: TimedPart,
  work: () => Promise<T>,
): Promise<T> {
  const { observe } = timings;
  if (!observe) return work();
  const began = performance.now();
  try {
    return await work();
  } finally {
    observe(part, performance.now() - began);
  }
}

/** Returns counters at zero. */
export const noStatistics = (): DatabaseStatistics => ({
  reads: 0,
  scans: 0,
  writes: 0,
  transactions: 0,
  batches: 0,
  flushes: 0,
  releasedBytes: 0,
  movedRows: 0,
  timings: {},
});
