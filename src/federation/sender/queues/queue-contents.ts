import { maxEdus, maxPdus } from '../../transaction-limits.ts';
import { OutboxReader } from '../edus/outbox-reader.ts';
import { type EphemeralEdu, PendingEdus } from '../edus/pending-edus.ts';
import type { Transaction } from '../transactions/transaction.ts';
import { TransactionSize } from '../transactions/transaction-size.ts';
import { PendingEvents } from './pending-events.ts';
import type { QueueDeps } from './queue-deps.ts';

type Deps = Pick<QueueDeps, 'clock' | 'database' | 'progress' | 'catchUp' | 'nextTransactionId'>;

/** The pending events and EDUs of one server, and how they are put into transactions. */
export class QueueContents {
  readonly events: PendingEvents;
  readonly size = new TransactionSize();
  readonly #edus: PendingEdus;
  readonly #outbox: OutboxReader;
  readonly #nextId: () => string;

  /** @param options `behind`: whether the server lacks events that are to be read from the database */
  constructor(destination: string, deps: Deps, options: { readonly behind: boolean }) {
    this.events = new PendingEvents(destination, deps, options);
    this.#edus = new PendingEdus(deps.clock);
    this.#outbox = new OutboxReader(destination, deps.database);
    this.#nextId = () => deps.nextTransactionId();
  }

  /** Whether nothing is pending, in memory or in the database. */
  get isEmpty(): boolean {
    return (
      this.events.size === 0 && this.#edus.size === 0 && !this.events.behind && !this.#outbox.mayHaveEdus
    );
  }

  /** Number of pending ephemeral EDUs. */
  get ephemeralCount(): number {
    return this.#edus.size;
  }

  /** Adds an ephemeral EDU, in place of a pending EDU of the same type and key. */
  addEphemeral(edu: EphemeralEdu): void {
    this.#edus.add(edu);
  }

  /** Drops ephemeral EDUs that expire within this number of milliseconds. */
  dropExpiringWithin(pause: number): void {
    this.#edus.dropExpiringWithin(pause);
  }

  /** Called when an EDU was added to the outbox. */
  addedToOutbox(): void {
    this.#outbox.onAdded();
  }

  /**
   * Makes the next transaction; `undefined` when nothing is pending. It has missed or pending events, then
   * durable EDUs, then ephemeral EDUs as far as they fit.
   */
  async next(): Promise<Transaction | undefined> {
    const { limit } = this.size;
    const missed = await this.events.catchUp(Math.min(maxPdus, limit));
    const durable = await this.#outbox.read(Math.min(maxEdus, limit - (missed?.pdus.length ?? 0)));
    const { pdus, caughtUp } = missed ?? this.events.take(Math.min(maxPdus, limit - durable.length));
    const freeEdus = Math.min(maxEdus, limit - pdus.length) - durable.length;
    const ephemeral = freeEdus > 0 ? this.#edus.take(freeEdus) : [];
    if (pdus.length + durable.length + ephemeral.length === 0) return undefined;
    return { id: this.#nextId(), pdus, durable, ephemeral, caughtUp };
  }

  /** Drops the contents of a transaction that the server has acknowledged, or has refused permanently. */
  async settled(transaction: Transaction): Promise<void> {
    this.events.settled(transaction);
    this.#edus.settled();
    await this.#outbox.acknowledge(transaction.durable);
  }

  /** Makes the ephemeral EDUs of a failed transaction pending again: the repeated transaction does not contain them. */
  putBackEphemeral(transaction: Transaction): void {
    transaction.ephemeral = [];
    this.#edus.putBack();
  }

  /** Makes the events and durable EDUs of a transaction pending again, for other transactions. */
  putBack(transaction: Transaction): void {
    this.#outbox.putBack(transaction.durable);
    this.events.putBack(transaction);
  }

  /** Drops a transaction from memory; its contents are read from the database again. */
  forget({ durable }: Transaction): void {
    this.#outbox.putBack(durable);
    this.events.forget();
  }
}
