import type { Logger } from '../../observability/logger.ts';
import { DatabaseClosed } from '../errors.ts';
import type { SqliteFile, Table } from './connection.ts';
import { typedError } from './errors.ts';
import { WorkerClient } from './worker-client.ts';

/** Maximum number of concurrent scans. */
const maxScanners = 2;

/** Read-only connections in worker threads, which are started on demand. */
export class ScannerPool {
  readonly #file: SqliteFile;
  readonly #log: Logger;
  readonly #workers = new Set<WorkerClient>();
  #closed = false;

  constructor(file: SqliteFile, log: Logger) {
    this.#file = file;
    this.#log = log;
  }

  async run(sql: string, parameters: readonly unknown[]): Promise<Table> {
    if (this.#closed) throw new DatabaseClosed('the database is closed');
    const [result] = await this.#pick().send([{ kind: 'query', sql, parameters }]);
    if (result?.error) throw typedError(result.error);
    return result!.table!;
  }

  /** Must be called after a schema change. */
  async forgetStatements(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.send([{ kind: 'forget-statements' }])));
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#workers].map((worker) => worker.close()));
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
