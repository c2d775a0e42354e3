import type { Database, Statement } from '../../../src/kernel/database/index.ts';

/** A database whose batches a test can delay or fail, as a slow or full disk does. */
export class UnreliableDatabase implements Database {
  readonly #database: Database;
  /** Decides whether a batch fails; by default none does. */
  fails: (statements: readonly Statement[]) => boolean = () => false;
  /** Returns a promise that a batch waits for; by default, batches are written at once. */
  delay: (statements: readonly Statement[]) => Promise<void> | undefined = () => undefined;

  constructor(database: Database) {
    this.#database = database;
  }

  get statistics() {
    return this.#database.statistics;
  }

  get numberBounds() {
    return this.#database.numberBounds;
  }

  fullText: Database['fullText'] = (name) => this.#database.fullText(name);

  reader: Database['reader'] = () => this.#database.reader();
  scanner: Database['scanner'] = () => this.#database.scanner();
  transaction: Database['transaction'] = (work) => this.#database.transaction(work);
  changeSchema: Database['changeSchema'] = (change) => this.#database.changeSchema(change);
  size: Database['size'] = () => this.#database.size();
  version: Database['version'] = () => this.#database.version();
  releaseSpace: Database['releaseSpace'] = (signal) => this.#database.releaseSpace(signal);
  inBackground: Database['inBackground'] = (work) => this.#database.inBackground(work);
  close: Database['close'] = () => this.#database.close();

  async batch(statements: readonly Statement[]): Promise<void> {
    await this.delay(statements);
    if (this.fails(statements)) throw new Error('the disk is full');
    await this.#database.batch(statements);
  }
}

/** Whether a value of a batch contains the text. */
export function mentions(statements: readonly Statement[], text: string): boolean {
  return statements.some(({ rows }) =>
    rows.some((row) => row.some((value) => typeof value === 'string' && value.includes(text))),
  );
}
