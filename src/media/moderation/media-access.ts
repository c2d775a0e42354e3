import type { Clock, Timer } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { mediaNotFound } from '../media-address.ts';
import type { MediaFile } from '../media-file.ts';

/** Milliseconds between two writes of the times at which files were read. */
const flushInterval = 60_000;

/** Maximum number of files whose times wait in memory; when it is reached, the times are written early. */
const maxPending = 10_000;

/** How a file is read. */
export interface MediaReading {
  /** Whether an administrator inspects the file. An inspection does not change the time when the file was last read. */
  readonly isInspection?: boolean;
  /** Whether the file is also read if it is quarantined. */
  readonly readsQuarantined?: boolean;
}

/**
 * Records when each file was last read by users and servers. A request updates memory only; pending times are written
 * together once a minute, so a crash loses the times of at most a minute.
 */
export class MediaAccess {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** Times of reads that are not written yet, by area and file id. */
  #pending = new Map<string, { readonly file: MediaFile; readonly at: number }>();
  #timer: Timer | undefined;
  #flushing: Promise<void> = Promise.resolve();

  constructor({ database, clock, log }: { database: Database; clock: Clock; log: Logger }) {
    this.#database = database;
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * Returns a file that may be read, and records that it is read, without I/O.
   * @throws MatrixError M_NOT_FOUND for quarantined files
   */
  open(file: MediaFile, { isInspection = false, readsQuarantined = false }: MediaReading = {}): MediaFile {
    if (file.isQuarantined && !readsQuarantined) throw mediaNotFound();
    if (!isInspection) this.#record(file);
    return file;
  }

  /** Writes pending times; resolves when they are on disk. Failures are only logged. */
  flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const reads = [...this.#pending.values()];
    this.#pending = new Map();
    this.#flushing = this.#flushing
      .then(() => this.#write(reads))
      .catch((error: unknown) => this.#log.warn({ err: error }, 'Failed to write when media was last read'));
    return this.#flushing;
  }

  #record(file: MediaFile): void {
    this.#pending.set(`${file.area} ${file.fileId}`, { file, at: this.#clock.now() });
    if (this.#pending.size >= maxPending) void this.flush();
    else this.#timer ??= this.#clock.setTimer(flushInterval, () => void this.flush());
  }

  async #write(reads: readonly { readonly file: MediaFile; readonly at: number }[]): Promise<void> {
    const statements = (['local', 'remote'] as const).map((area) => ({
      sql: `UPDATE ${area}_media SET last_access_at = ? WHERE file_id = ?`,
      rows: reads.filter(({ file }) => file.area === area).map(({ file, at }) => [at, file.fileId]),
    }));
    const nonEmpty = statements.filter(({ rows }) => rows.length > 0);
    if (nonEmpty.length > 0) await this.#database.batch(nonEmpty);
  }
}
