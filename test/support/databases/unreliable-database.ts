import type { Database, Statement } from '../../../src/kernel/database/index.ts';

/** A database whose batches wait or fail when a test wants them to, as they do when a disk is slow or full. */
export class UnreliableDatabase implements Database {
  readonly #database: Database;
  /** Says of a batch whether it fails; by default none does. */
  fails: (statements: readonly Statement[]) => boolean = () => false;
  /** Resolves when a batch may be written; by default at once. */
  delay: (statements: readonly Statement[]) => Promise<void> | undefined = () => undefined;

  constructor(database: Database) {
    this.#database = database;
  }

  get statistics() {
    return this.#database.statistics;
  }

  fullText: Database['fullText'] = (name) => this.#database.fullText(name);

  reader: Database['reader'] = () => this.#database.reader();
  scanner: Database['scanner'] = () => this.#database.scanner();
  transaction: Database['transaction'] = (work) => this.#database.transaction(work);
  changeSchema: Database['changeSchema'] = (change) => this.#database.changeSchema(change);
  close: Database['close'] = () => this.#database.close();

  async batch(statements: readonly Statement[]): Promise<void> {
    await this.delay(statements);
    if (this.fails(statements)) throw new Error('the disk is full');
    await this.#database.batch(statements);
  }
}

/** Whether a batch writes something in which a text occurs. */
export function mentions(statements: readonly Statement[], text: string): boolean {
  return statements.some(({ rows }) =>
    rows.some((row) => row.some((value) => typeof value === 'string' && value.includes(text))),
  );
}
