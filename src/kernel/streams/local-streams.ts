import type { Clock } from '../clock.ts';
import type { Database, Writer } from '../database/database.ts';
import type { Logger, Metrics } from '../observability/index.ts';
import { DurableBound } from './durable-bound.ts';
import { PendingWatch } from './pending-watch.ts';
import { PositionCounter, type PositionReservation } from './position-counter.ts';
import { FactPublisher, type PublishListener } from './published-facts.ts';
import type { Publish, Reservation, Reserve } from './reservation.ts';
import { deliver, type ListenerFailed, type Stream } from './stream.ts';
import type { StreamWriter } from './stream-writer.ts';
import { TransactionFacts } from './transaction-facts.ts';

export interface LocalStreamsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: Metrics | undefined;
  /** Number of positions by which the bound on disk is raised the first time. */
  readonly boundStep?: number | undefined;
}

const defaultBoundStep = 100_000;

/**
 * The writing half of the streams: the counter that all of them share, and the order in which their facts become
 * visible. A position is reserved before or in a transaction, and completed or abandoned when the transaction ends.
 * `current` never passes a pending position.
 *
 * No position is assigned twice, not even after a crash or on streams that live in memory: a bound on disk is raised
 * with the transactions that store positions, and `current` never passes it. Reserving never waits for this bound.
 */
export class LocalStreams implements StreamWriter {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #counter: PositionCounter;
  readonly #bound: DurableBound;
  readonly #pending: PendingWatch;
  readonly #advanceListeners: ((current: number) => void)[] = [];
  #publisher: FactPublisher | undefined;

  private constructor(deps: LocalStreamsDeps, bound: DurableBound, last: number) {
    this.#database = deps.database;
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#bound = bound;
    this.#counter = new PositionCounter(last, bound.value, (current) => this.#onAdvance(current));
    this.#pending = new PendingWatch(this.#counter, deps);
    bound.onRaised((value) => this.#counter.raiseLimit(value));
  }

  /** Starts above every position that an earlier run may have assigned. */
  static async open(deps: LocalStreamsDeps): Promise<LocalStreams> {
    const step = deps.boundStep ?? defaultBoundStep;
    return new LocalStreams(deps, ...(await DurableBound.open(deps.database, 'positions', step)));
  }

  get current(): number {
    return this.#counter.current;
  }

  onAdvance(listener: (current: number) => void): void {
    this.#advanceListeners.push(listener);
  }

  /**
   * Calls `listener` with all later facts as JSON, for other processes. Until `onPublish` is called for the first time,
   * no fact is encoded.
   * @returns a function that ends the subscription
   */
  onPublish(listener: PublishListener): () => void {
    this.#publisher ??= new FactPublisher(this.current, this.#log);
    return this.#publisher.subscribe(listener);
  }

  async write<S, T>(work: (writer: Writer<S>, publish: Publish) => Promise<T>): Promise<T> {
    let facts: TransactionFacts | undefined;
    try {
      const result = await this.#database.transaction<S, T>((writer) => {
        facts?.abandon(); // The database may run `work` again after a conflict.
        facts = new TransactionFacts((stream) => this.#reserve(stream));
        return work(writer, facts.publish);
      });
      await facts?.complete();
      return result;
    } catch (error) {
      facts?.abandon();
      throw error;
    }
  }

  announce<F>(stream: Stream<F>, fact: F): number {
    const reservation = this.#reserve(stream);
    reservation.complete(fact);
    return reservation.position;
  }

  reserving<T>(work: (reserve: Reserve) => T): T {
    const reserved: { abandon(): void }[] = [];
    try {
      return work((stream) => {
        const reservation = this.#reserve(stream);
        reserved.push(reservation);
        return reservation;
      });
    } catch (error) {
      for (const reservation of reserved) reservation.abandon();
      throw error;
    }
  }

  #reserve<F>(stream: Stream<F>): Reservation<F> {
    this.#pending.watch();
    const reservation = this.#counter.reserve(stream.name, this.#clock.monotonic());
    this.#bound.assign(reservation.position);
    return {
      position: reservation.position,
      complete: (fact, delivered) => this.#complete(reservation, stream, fact, delivered),
      abandon: () => reservation.abandon(),
    };
  }

  #complete<F>(reservation: PositionReservation, stream: Stream<F>, fact: F, delivered?: () => void): void {
    reservation.complete((position) => {
      deliver(stream, fact, position, this.#listenerFailed);
      this.#publisher?.add(stream, fact, position);
      delivered?.();
    });
  }

  #onAdvance(current: number): void {
    for (const listener of this.#advanceListeners) {
      try {
        listener(current);
      } catch (error) {
        this.#log.error({ err: error, position: current }, 'A listener of the streams failed');
      }
    }
    this.#publisher?.advanced(current);
  }

  readonly #listenerFailed: ListenerFailed = (error, stream, position) =>
    this.#log.error({ err: error, stream, position }, 'A listener of a stream failed');
}
