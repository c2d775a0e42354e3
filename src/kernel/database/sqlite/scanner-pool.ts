import type { Clock, Timer } from '../../clock.ts';
import type { Logger } from '../../observability/logger.ts';
import { DatabaseClosed } from '../errors.ts';
import type { SqliteFile, Table } from './connection.ts';
import { typedError } from './errors.ts';
import { WorkerClient } from './worker-client.ts';

/** Maximum number of concurrent scans. */
const maxScanners = 2;

/** Milliseconds without a scan after which the threads end. */
const idleTimeout = 15_000;

/** Read-only connections in worker threads. The threads start on demand, and end when no scan has run for a while. */
export class ScannerPool {
  readonly #file: SqliteFile;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #workers = new Set<WorkerClient>();
  #ending: Timer | undefined;
  #closed = false;

  constructor(file: SqliteFile, log: Logger, clock: Clock) {
    this.#file = file;
    this.#log = log;
    this.#clock = clock;
  }

  get threadCount(): number {
    return this.#workers.size;
  }

  /** Runs a query that only reads. @throws DatabaseClosed, DatabaseError */
  async run(sql: string, parameters: readonly unknown[]): Promise<Table> {
    if (this.#closed) throw new DatabaseClosed('the database is closed');
    this.#ending?.cancel();
    const scanning = this.#pick().send([{ kind: 'query', sql, parameters }]);
    this.#ending = this.#clock.setTimer(idleTimeout, () => this.#endIdle());
    const [result] = await scanning;
    if (result?.error) throw typedError(result.error);
    return result!.table!;
  }

  /** Makes the threads forget their prepared statements. Must be called after a change of the schema. */
  async forgetStatements(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.send([{ kind: 'forget-statements' }])));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#ending?.cancel();
    await Promise.all([...this.#workers].map((worker) => worker.close()));
  }

  #endIdle(): void {
    for (const worker of this.#workers) {
      if (worker.load > 0) continue;
      this.#workers.delete(worker);
      void worker.close();
    }
    if (this.#workers.size > 0) this.#ending = this.#clock.setTimer(idleTimeout, () => this.#endIdle());
  }

  /** Returns the least busy worker, or a new one when all are busy and the maximum is not reached. */
  #pick(): WorkerClient {
    const [leastBusy] = [...this.#workers].sort((a, b) => a.load - b.load);
    if (leastBusy && (leastBusy.load === 0 || this.#workers.size >= maxScanners)) return leastBusy;
    const worker: WorkerClient = new WorkerClient({ file: this.#file, access: 'reading' }, (error) => {
      this.#workers.delete(worker);
      this.#log.error({ err: error }, 'A thread for database scans ended unexpectedly');
    });
    this.#workers.add(worker);
    return worker;
  }
}
