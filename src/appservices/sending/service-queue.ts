import type { Appservice } from '../../appservice-registry/index.ts';
import { type Clock, sleep } from '../../kernel/clock.ts';
import { type Database, writerFor } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { MessageQueues } from '../../to-device/index.ts';
import type { ServiceClient } from '../requests/service-client.ts';
import { deleteOutboxUpTo, type OutboxRow, readOutbox, readQueue, writeTransaction } from '../store.ts';
import type { AppserviceTables } from '../tables.ts';
import { type ComposeDeps, composeTransaction } from './compose.ts';
import { acknowledgeMessages } from './sent-messages.ts';

export interface ServiceQueueDeps extends ComposeDeps {
  readonly queues: Pick<MessageQueues, 'pending' | 'acknowledge'>;
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly client: ServiceClient;
  /** Removes and returns the ephemeral data that a service has to receive. */
  readonly takeEphemeral: (serviceId: string) => readonly JsonObject[];
}

/** Maximum number of outbox entries in one transaction; entries at the position of the last one are added to it. */
const maxEntries = 100;

/** Milliseconds for which a service may process a transaction. */
const timeout = 60_000;

/**
 * First and longest backoff in milliseconds before a transaction is sent again. A request of the service ends a backoff, but
 * none is shorter than the first.
 */
const [minBackoff, maxBackoff] = [1_000, 5 * 60_000];

/** A transaction that the service has not accepted. */
interface PendingTransaction {
  readonly id: number;
  readonly body: string;
}

/**
 * Sends transactions to one service, one at a time and in order. A transaction is stored before it is sent, and is sent with
 * the same id and content until the service accepts it, also after a restart. While a service is down, its entries wait in
 * the outbox.
 */
export class ServiceQueue {
  readonly service: Appservice;
  readonly #deps: ServiceQueueDeps;
  readonly #stopping = new AbortController();
  /** Ends the backoff. */
  #backoffEnd = new AbortController();
  #lastId: number;
  #pending: PendingTransaction | undefined;
  /** Entries whose transaction was to be stored when the database failed: it may have been stored nevertheless. */
  #maybeStored: readonly OutboxRow[] | undefined;
  /** Entries of stored transactions, whose to-device messages must still be deleted. */
  #unacknowledged: readonly OutboxRow[] = [];
  /** Ephemeral data that was taken for a transaction that is not stored. */
  #ephemeral: readonly JsonObject[] = [];
  /** Whether the service has accepted the transaction that is still in the database. */
  #isAcceptedUnsaved = false;
  #running: Promise<void> | undefined;
  #isWoken = false;
  #isFailing = false;

  /** @param stored the last transaction before this start; `undefined` when there was none */
  constructor(
    service: Appservice,
    deps: ServiceQueueDeps,
    stored: { readonly txn_id: number; readonly body: string | null } | undefined,
  ) {
    this.service = service;
    this.#deps = deps;
    this.#lastId = stored?.txn_id ?? 0;
    if (stored?.body) this.#pending = { id: stored.txn_id, body: stored.body };
  }

  /** Whether the service did not accept the last attempt. */
  get isFailing(): boolean {
    return this.#isFailing;
  }

  /** Sends transactions until nothing is left to send. */
  wake(): void {
    if (this.#stopping.signal.aborted) return;
    this.#isWoken = true;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      if (this.#isWoken) this.wake();
    });
  }

  /** Ends the backoff, though not its first second, after the service has shown that it is up. */
  retryNow(): void {
    if (this.#isFailing) this.#backoffEnd.abort();
  }

  /** Aborts the transaction in flight; it is sent again after the next start. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#backoffEnd.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    let backoff = minBackoff;
    while (this.#isWoken && !this.#stopping.signal.aborted) {
      this.#isWoken = false;
      try {
        while (!this.#stopping.signal.aborted) {
          if (!this.#pending) await this.#compose();
          if (!this.#pending) break;
          await this.#send(this.#pending);
          this.#pending = undefined;
          this.#isAcceptedUnsaved = true;
          backoff = minBackoff;
        }
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        this.#report(error);
        this.#backoffEnd = new AbortController();
        await sleep(this.#deps.clock, minBackoff, this.#stopping.signal);
        await sleep(this.#deps.clock, backoff - minBackoff, this.#backoffEnd.signal);
        backoff = Math.min(backoff * 2, maxBackoff);
        this.#isWoken = true;
      }
    }
  }

  /** Stores the next transaction; when there is none, stores that the last one was accepted. */
  async #compose(): Promise<void> {
    const { database, takeEphemeral } = this.#deps;
    const { id: serviceId } = this.service;
    await this.#recoverStored();
    while (!this.#pending) {
      await this.#acknowledge();
      const rows = await readOutbox(database.reader<AppserviceTables>(), serviceId, maxEntries);
      const last = rows.at(-1);
      if (this.#ephemeral.length === 0) this.#ephemeral = takeEphemeral(serviceId);
      const body = await composeTransaction(this.#deps, this.service, rows, this.#ephemeral);
      if (body === undefined && !last && !this.#isAcceptedUnsaved) return;
      const id = body === undefined ? this.#lastId : this.#lastId + 1;
      this.#maybeStored = rows;
      await database.transaction<AppserviceTables, void>(async (anyWriter) => {
        const writer = writerFor<AppserviceTables>(anyWriter);
        await writeTransaction(writer, serviceId, id, body ?? null);
        if (last) await deleteOutboxUpTo(writer, serviceId, last.position);
      });
      this.#maybeStored = undefined;
      this.#stored(id, body, rows);
      if (!last) break;
    }
    await this.#acknowledge();
  }

  /** Looks whether the last transaction was stored, after the database failed while storing it. */
  async #recoverStored(): Promise<void> {
    if (!this.#maybeStored) return;
    const stored = await readQueue(this.#deps.database.reader<AppserviceTables>(), this.service.id);
    if (stored && stored.txn_id > this.#lastId) {
      this.#stored(stored.txn_id, stored.body ?? undefined, this.#maybeStored);
    }
    this.#maybeStored = undefined;
  }

  #stored(id: number, body: string | undefined, rows: readonly OutboxRow[]): void {
    this.#isAcceptedUnsaved = false;
    this.#lastId = id;
    this.#ephemeral = [];
    this.#unacknowledged = [...this.#unacknowledged, ...rows];
    if (body !== undefined) this.#pending = { id, body };
  }

  async #acknowledge(): Promise<void> {
    await acknowledgeMessages(this.#deps.queues, this.service, this.#unacknowledged);
    this.#unacknowledged = [];
  }

  async #send({ id, body }: PendingTransaction): Promise<void> {
    const path = `/_proto/app/v1/transactions/${id}`;
    const { signal } = this.#stopping;
    const answer = await this.#deps.client.send(this.service, { method: 'PUT', path, body, timeout, signal });
    if (answer.status < 200 || answer.status >= 300) {
      throw new Error(`The application service answered ${answer.status}: ${answer.text.slice(0, 200)}`);
    }
    if (this.#isFailing)
      this.#deps.log.info({ service: this.service.id }, 'The application service accepts transactions again');
    this.#isFailing = false;
  }

  #report(error: unknown): void {
    const { log } = this.#deps;
    const about = { err: error, service: this.service.id, transaction: this.#pending?.id };
    if (this.#isFailing) log.debug(about, 'A transaction for the application service has failed again');
    else
      log.warn(
        about,
        'The application service did not accept a transaction, or it could not be prepared; it is tried again later',
      );
    this.#isFailing = true;
  }
}
