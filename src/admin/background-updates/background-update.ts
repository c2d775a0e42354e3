/** Work over many rows, in batches. An administrator can start it. */
export interface BackgroundUpdate {
  /** The `job_name` with which an administrator starts this work. */
  readonly name: string;
  /** Counts the rows. */
  count(): Promise<number>;
  /**
   * Processes the next rows.
   * @param after `last` of the previous batch; null for the first batch
   * @param size maximum number of rows
   * @returns the key of the last row and the number of rows of this batch; `undefined` when no rows are left
   */
  next(
    after: string | null,
    size: number,
  ): Promise<{ readonly last: string; readonly rows: number } | undefined>;
}
