import type { Database } from '../../../kernel/database/index.ts';
import { deleteOutgoing, readOutgoing } from '../store.ts';
import type { SenderTables } from '../tables.ts';
import type { DurableEdu } from '../transactions/transaction.ts';

/** Characters of durable EDUs in one transaction, beyond which no further one is added. */
const maxCharacters = 2 * 1024 * 1024;

/** The part of the outbox that is for one destination. */
export class OutboxReader {
  readonly #destination: string;
  readonly #database: Database;
  /** Acknowledged, and not deleted yet. */
  #done: readonly number[] = [];
  #mayHold = false;
  /** Counts additions, so that one which comes while it is read is not overlooked. */
  #added = 0;

  constructor(destination: string, database: Database) {
    this.#destination = destination;
    this.#database = database;
  }

  /** Whether there may be something that was not read. */
  get mayHold(): boolean {
    return this.#mayHold || this.#done.length > 0;
  }

  added(): void {
    this.#mayHold = true;
    this.#added++;
  }

  /** The oldest EDUs. They are given again unless they are `done` before. */
  async read(limit: number): Promise<readonly DurableEdu[]> {
    await this.#delete();
    if (!this.#mayHold || limit <= 0) return [];
    const added = this.#added;
    const rows = await readOutgoing(this.#database.reader<SenderTables>(), this.#destination, limit);
    const taken = rows.slice(0, fitting(rows));
    if (taken.length === rows.length && rows.length < limit && added === this.#added) this.#mayHold = false;
    return taken;
  }

  /** They are not on their way any more. */
  unread(edus: readonly DurableEdu[]): void {
    if (edus.length > 0) this.#mayHold = true;
  }

  /** The destination has them. */
  async done(edus: readonly DurableEdu[]): Promise<void> {
    this.#done = [...this.#done, ...edus.map(({ id }) => id)];
    await this.#delete();
  }

  async #delete(): Promise<void> {
    const ids = this.#done;
    if (ids.length === 0) return;
    await this.#database.transaction<SenderTables, void>((writer) =>
      deleteOutgoing(writer, this.#destination, ids),
    );
    this.#done = this.#done.slice(ids.length);
  }
}

/** How many of the first ones fit into a transaction; at least one. */
function fitting(edus: readonly DurableEdu[]): number {
  let size = 0;
  const tooMany = edus.findIndex(({ content }) => {
    size += content.length;
    return size > maxCharacters;
  });
  return tooMany === -1 ? edus.length : Math.max(1, tooMany);
}
