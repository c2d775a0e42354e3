import type { Database } from '../../../kernel/database/index.ts';
import { deleteOutgoing, readOutgoing } from '../store.ts';
import type { SenderTables } from '../tables.ts';
import type { DurableEdu } from '../transactions/transaction.ts';

/** Maximum characters of durable EDUs in one transaction; a single EDU may be longer. */
const maxCharacters = 2 * 1024 * 1024;

/** Reads one destination's EDUs from the outbox, the table of durable EDUs that wait for delivery. */
export class OutboxReader {
  readonly #destination: string;
  readonly #database: Database;
  /** Ids of acknowledged EDUs that are not deleted yet. */
  #acknowledged: readonly number[] = [];
  /** Whether the outbox may contain EDUs that `read` must return. */
  #mayHaveEdus = false;
  /** Number of calls of `onAdded`: when it changes during a read, there may be EDUs that were not read. */
  #additions = 0;

  constructor(destination: string, database: Database) {
    this.#destination = destination;
    this.#database = database;
  }

  /** Whether there may be EDUs that were not read, or acknowledged EDUs that are not deleted yet. */
  get mayHaveEdus(): boolean {
    return this.#mayHaveEdus || this.#acknowledged.length > 0;
  }

  /** Called when an EDU was added to the outbox for this destination. */
  onAdded(): void {
    this.#mayHaveEdus = true;
    this.#additions++;
  }

  /** Reads the oldest EDUs. They are returned again until they are acknowledged. */
  async read(limit: number): Promise<readonly DurableEdu[]> {
    await this.#delete();
    if (!this.#mayHaveEdus || limit <= 0) return [];
    const additionsBefore = this.#additions;
    const rows = await readOutgoing(this.#database.reader<SenderTables>(), this.#destination, limit);
    const selected = rows.slice(0, countFitting(rows));
    if (selected.length === rows.length && rows.length < limit && additionsBefore === this.#additions)
      this.#mayHaveEdus = false;
    return selected;
  }

  /** Takes back EDUs that were not acknowledged: `read` returns them again. */
  putBack(edus: readonly DurableEdu[]): void {
    if (edus.length > 0) this.#mayHaveEdus = true;
  }

  /** Deletes EDUs that the destination has acknowledged. */
  async acknowledge(edus: readonly DurableEdu[]): Promise<void> {
    this.#acknowledged = [...this.#acknowledged, ...edus.map(({ id }) => id)];
    await this.#delete();
  }

  async #delete(): Promise<void> {
    const ids = this.#acknowledged;
    if (ids.length === 0) return;
    await this.#database.transaction<SenderTables, void>((writer) =>
      deleteOutgoing(writer, this.#destination, ids),
    );
    this.#acknowledged = this.#acknowledged.slice(ids.length);
  }
}

/** Returns how many of the first EDUs fit into a transaction; at least one. */
function countFitting(edus: readonly DurableEdu[]): number {
  let size = 0;
  const tooMany = edus.findIndex(({ content }) => {
    size += content.length;
    return size > maxCharacters;
  });
  return tooMany === -1 ? edus.length : Math.max(1, tooMany);
}
