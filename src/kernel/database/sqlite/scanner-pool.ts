import type { Logger } from '../../observability/logger.ts';
import { DatabaseClosed } from '../errors.ts';
import type { SqliteFile, Table } from './connection.ts';
import { typedError } from './errors.ts';
import { WorkerClient } from './worker-client.ts';

/** How many long reads run at the same time. */
const scannerLimit = 2;

/** Reading connections in worker threads. A thread is started when it is first needed. */
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

  /** Must be called when tables have changed. */
  async forgetStatements(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.send([{ kind: 'forget-statements' }])));
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#workers].map((worker) => worker.close()));
  }

  /** The one with the least to do, or a new one when all are busy. */
  #pick(): WorkerClient {
    const [least] = [...this.#workers].sort((a, b) => a.load - b.load);
    if (least && (least.load === 0 || this.#workers.size >= scannerLimit)) return least;
    const worker: WorkerClient = new WorkerClient({ file: this.#file, access: 'reading' }, (error) => {
      this.#workers.delete(worker);
      this.#log.error({ err: error }, 'a thread that scans the database is lost');
    });
    this.#workers.add(worker);
    return worker;
  }
}
