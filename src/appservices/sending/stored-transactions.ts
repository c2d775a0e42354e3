import type { Appservice } from '../../appservice-registry/index.ts';
import { type Database, writerFor } from '../../kernel/database/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { MessageQueues } from '../../to-device/index.ts';
import { deleteOutboxUpTo, type OutboxRow, readOutbox, readQueue, writeTransaction } from '../store.ts';
import type { AppserviceTables } from '../tables.ts';
import { type ComposeDeps, composeTransaction } from './compose.ts';
import { entriesWithFewMembers } from './device-lists.ts';
import { acknowledgeMessages } from './sent-messages.ts';

export interface StoredTransactionsDeps extends ComposeDeps {
  readonly queues: Pick<MessageQueues, 'pending' | 'acknowledge'>;
  readonly database: Database;
  /** Removes and returns the ephemeral data that a service has to receive. */
  readonly takeEphemeral: (serviceId: string) => readonly JsonObject[];
}

/**
 * Maximum number of outbox entries in one transaction. Further entries with the position of the last one are included
 * as well.
 */
const maxEntries = 100;

/** A transaction that the service has not accepted. */
export interface PendingTransaction {
  readonly id: number;
  /** The body as JSON. */
  readonly body: string;
}

/**
 * The transactions of one service. Each transaction is made of the next entries of the outbox and is stored before it
 * is sent. Its id and content therefore stay the same until the service accepts the transaction, also after a restart.
 */
export class StoredTransactions {
  readonly #service: Appservice;
  readonly #deps: StoredTransactionsDeps;
  /** The id of the last stored transaction; 0 before the first. */
  #lastId: number;
  /** The last stored transaction, until the service accepts it. */
  #pending: PendingTransaction | undefined;
  /** Whether the service has accepted the last transaction, but the database does not record this yet. */
  #isAcceptedUnsaved = false;
  /** Entries of a transaction that may be stored although the database failed while storing it. */
  #maybeStored: readonly OutboxRow[] | undefined;
  /** Entries of stored transactions whose to-device messages are still to be deleted. */
  #unacknowledged: readonly OutboxRow[] = [];
  /** Ephemeral data that was taken for a transaction that is not stored. */
  #ephemeral: readonly JsonObject[] = [];

  /** @param stored the last transaction before this start; `undefined` when there was none */
  constructor(
    service: Appservice,
    deps: StoredTransactionsDeps,
    stored: { readonly txn_id: number; readonly body: string | null } | undefined,
  ) {
    this.#service = service;
    this.#deps = deps;
    this.#lastId = stored?.txn_id ?? 0;
    if (stored?.body) this.#pending = { id: stored.txn_id, body: stored.body };
  }

  /** The transaction that `next` has returned and that the service has not accepted. */
  get pending(): PendingTransaction | undefined {
    return this.#pending;
  }

  /**
   * Returns the transaction that the service has not accepted, or else stores and returns the next one; `undefined` when
   * nothing is left to send.
   * @throws errors of the database; the next call continues
   */
  async next(): Promise<PendingTransaction | undefined> {
    if (this.#pending) return this.#pending;
    await this.#recoverStored();
    for (let hasMore = true; hasMore && !this.#pending; ) {
      await this.#acknowledge();
      hasMore = await this.#storeNext();
    }
    await this.#acknowledge();
    return this.#pending;
  }

  /** Records in memory that the service has accepted the transaction. The next call of `next` stores the acceptance. */
  accepted(): void {
    this.#pending = undefined;
    this.#isAcceptedUnsaved = true;
  }

  /**
   * Removes the next entries from the outbox, and stores a transaction with their content. When there is nothing to send,
   * stores only that the last transaction was accepted.
   * @returns whether there may be further entries
   */
  async #storeNext(): Promise<boolean> {
    const { database, takeEphemeral } = this.#deps;
    const { id: serviceId } = this.#service;
    const next = await readOutbox(database.reader<AppserviceTables>(), serviceId, maxEntries);
    const rows = await entriesWithFewMembers(this.#deps, next);
    const last = rows.at(-1);
    if (this.#ephemeral.length === 0) this.#ephemeral = takeEphemeral(serviceId);
    const body = await composeTransaction(this.#deps, this.#service, rows, this.#ephemeral);
    if (body === undefined && !last && !this.#isAcceptedUnsaved) return false;
    const id = body === undefined ? this.#lastId : this.#lastId + 1;
    this.#maybeStored = rows;
    await database.transaction<AppserviceTables, void>(async (anyWriter) => {
      const writer = writerFor<AppserviceTables>(anyWriter);
      await writeTransaction(writer, serviceId, id, body ?? null);
      if (last) await deleteOutboxUpTo(writer, serviceId, last.position);
    });
    this.#maybeStored = undefined;
    this.#applyStored(id, body, rows);
    return last !== undefined;
  }

  /** Checks whether the last transaction was stored, after the database failed while storing it. */
  async #recoverStored(): Promise<void> {
    if (!this.#maybeStored) return;
    const stored = await readQueue(this.#deps.database.reader<AppserviceTables>(), this.#service.id);
    if (stored && stored.txn_id > this.#lastId) {
      this.#applyStored(stored.txn_id, stored.body ?? undefined, this.#maybeStored);
    }
    this.#maybeStored = undefined;
  }

  #applyStored(id: number, body: string | undefined, rows: readonly OutboxRow[]): void {
    this.#isAcceptedUnsaved = false;
    this.#lastId = id;
    this.#ephemeral = [];
    this.#unacknowledged = [...this.#unacknowledged, ...rows];
    if (body !== undefined) this.#pending = { id, body };
  }

  /** Deletes the to-device messages of stored transactions. */
  async #acknowledge(): Promise<void> {
    await acknowledgeMessages(this.#deps.queues, this.#service, this.#unacknowledged);
    this.#unacknowledged = [];
  }
}
