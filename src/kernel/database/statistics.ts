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
}

/** Counters at zero. */
export const noStatistics = (): DatabaseStatistics => ({
  reads: 0,
  scans: 0,
  writes: 0,
  transactions: 0,
  batches: 0,
  flushes: 0,
});
