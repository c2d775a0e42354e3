import type { Appservice } from '../../appservice-registry/index.ts';
import { type Clock, sleep } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { ServiceClient } from '../requests/service-client.ts';
import {
  type PendingTransaction,
  StoredTransactions,
  type StoredTransactionsDeps,
} from './stored-transactions.ts';

export interface ServiceQueueDeps extends StoredTransactionsDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly client: ServiceClient;
}

/** Milliseconds for which a service may process a transaction. */
const timeout = 60_000;

/**
 * Milliseconds of the first backoff before a transaction is sent again. A request of the service ends a longer backoff,
 * but not before this time has passed.
 */
const minBackoff = 1_000;

/** Maximum milliseconds of a backoff. */
const maxBackoff = 5 * 60_000;

/**
 * Sends transactions to one service, one at a time and in order, and each until the service accepts it. While a service is
 * down, its entries wait in the outbox.
 */
export class ServiceQueue {
  readonly service: Appservice;
  readonly #deps: ServiceQueueDeps;
  readonly #transactions: StoredTransactions;
  readonly #stopping = new AbortController();
  /** Ends the backoff. */
  #backoffEnd = new AbortController();
  #running: Promise<void> | undefined;
  /** Whether there may be something to send. */
  #isWoken = false;
  /** Whether the last transaction could not be prepared, or was not accepted. */
  #isFailing = false;

  /** @param stored the last transaction before this start; `undefined` when there was none */
  constructor(
    service: Appservice,
    deps: ServiceQueueDeps,
    stored: { readonly txn_id: number; readonly body: string | null } | undefined,
  ) {
    this.service = service;
    this.#deps = deps;
    this.#transactions = new StoredTransactions(service, deps, stored);
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

  /**
   * Must be called after the service has shown that it is up. Ends the backoff, but not before `minBackoff` has passed.
   */
  retryNow(): void {
    if (this.#isFailing) this.#backoffEnd.abort();
  }

  /** Aborts the request with a transaction that is under way; the transaction is sent again after the next start. */
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
        if (await this.#sendNext()) this.#isWoken = true;
        backoff = minBackoff;
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        this.#report(error);
        await this.#pause(backoff);
        backoff = Math.min(backoff * 2, maxBackoff);
        this.#isWoken = true;
      }
    }
  }

  /** @returns whether there was a transaction to send */
  async #sendNext(): Promise<boolean> {
    const transaction = await this.#transactions.next();
    if (transaction) {
      await this.#send(transaction);
      this.#transactions.accepted();
      if (this.#isFailing)
        this.#deps.log.info(
          { service: this.service.id },
          'The application service accepts transactions again',
        );
    }
    this.#isFailing = false;
    return transaction !== undefined;
  }

  async #send({ id, body }: PendingTransaction): Promise<void> {
    const path = `/_proto/app/v1/transactions/${id}`;
    const { signal } = this.#stopping;
    const answer = await this.#deps.client.send(this.service, { method: 'PUT', path, body, timeout, signal });
    if (answer.status < 200 || answer.status >= 300) {
      throw new Error(`The application service answered ${answer.status}: ${answer.text.slice(0, 200)}`);
    }
  }

  async #pause(backoff: number): Promise<void> {
    this.#backoffEnd = new AbortController();
    await sleep(this.#deps.clock, minBackoff, this.#stopping.signal);
    await sleep(this.#deps.clock, backoff - minBackoff, this.#backoffEnd.signal);
  }

  #report(error: unknown): void {
    const { log } = this.#deps;
    const logFields = { err: error, service: this.service.id, transaction: this.#transactions.pending?.id };
    if (this.#isFailing) log.debug(logFields, 'A transaction for the application service has failed again');
    else
      log.warn(
        logFields,
        'A transaction could not be prepared, or the application service did not accept it; the server tries again later',
      );
    this.#isFailing = true;
  }
}
