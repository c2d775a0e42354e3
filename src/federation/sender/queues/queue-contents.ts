import { OutboxReader } from '../edus/outbox-reader.ts';
import { type EphemeralEdu, PendingEdus } from '../edus/pending-edus.ts';
import { PendingEvents } from '../events/pending-events.ts';
import { maxEdus, maxPdus, type Transaction } from '../transactions/transaction.ts';
import { TransactionSize } from '../transactions/transaction-size.ts';
import type { QueueDeps } from './queue-deps.ts';

type Deps = Pick<QueueDeps, 'clock' | 'database' | 'progress' | 'catchUp' | 'nextTransactionId'>;

/** What there is to be sent to one server, and how it is put into transactions. */
export class QueueContents {
  readonly events: PendingEvents;
  readonly size = new TransactionSize();
  readonly #edus: PendingEdus;
  readonly #outbox: OutboxReader;
  readonly #nextId: () => string;

  constructor(destination: string, deps: Deps, options: { readonly behind: boolean }) {
    this.events = new PendingEvents(destination, deps, options);
    this.#edus = new PendingEdus(deps.clock);
    this.#outbox = new OutboxReader(destination, deps.database);
    this.#nextId = () => deps.nextTransactionId();
  }

  /** Whether there is nothing, neither in memory nor on disk. */
  get isEmpty(): boolean {
    return this.events.size === 0 && this.#edus.size === 0 && !this.events.behind && !this.#outbox.mayHold;
  }

  /** How many ephemeral EDUs wait. */
  get ephemeral(): number {
    return this.#edus.size;
  }

  addEphemeral(edu: EphemeralEdu): void {
    this.#edus.add(edu);
  }

  /** Nothing is sent for so many milliseconds. */
  dropStaleIn(pause: number): void {
    this.#edus.dropStaleIn(pause);
  }

  /** There is something in the outbox. */
  addedToOutbox(): void {
    this.#outbox.added();
  }

  /**
   * Makes the next transaction, `undefined` when there is nothing to send: events that the server lacks, EDUs that
   * must arrive, then those about now as far as there is room.
   */
  async next(): Promise<Transaction | undefined> {
    const { most } = this.size;
    const caught = await this.events.catchUp(Math.min(maxPdus, most));
    const durable = await this.#outbox.read(Math.min(maxEdus, most - (caught?.pdus.length ?? 0)));
    const { pdus, caughtUp } = caught ?? this.events.take(Math.min(maxPdus, most - durable.length));
    const left = Math.min(maxEdus, most - pdus.length) - durable.length;
    const ephemeral = left > 0 ? this.#edus.take(left) : [];
    if (pdus.length + durable.length + ephemeral.length === 0) return undefined;
    return { id: this.#nextId(), pdus, durable, ephemeral, caughtUp };
  }

  /** The server has what is in the transaction, or is not to be sent it again. */
  async settled(transaction: Transaction): Promise<void> {
    this.events.settled(transaction);
    this.#edus.settled();
    await this.#outbox.done(transaction.durable);
  }

  /** What is about now is not sent again with the transaction, but as it is later. */
  putBackEphemeral(transaction: Transaction): void {
    transaction.ephemeral = [];
    this.#edus.putBack();
  }

  /** All else that is in the transaction goes into others. */
  putBack(transaction: Transaction): void {
    this.#outbox.unread(transaction.durable);
    this.events.putBack(transaction);
  }

  /** It is not kept in memory, and comes from the disk again. */
  forget({ durable }: Transaction): void {
    this.#outbox.unread(durable);
    this.events.forget();
  }
}
