import type { Database, Writer } from '../database/database.ts';
import { PositionCounter, type Reservation } from './position-counter.ts';
import { extendBound, type PositionTables, readBound } from './store.ts';

/** A named kind of fact. Facts are delivered to listeners in the order of their positions, after commit. */
export class Stream<F> {
  readonly name: string;
  readonly #listeners: ((fact: F, position: number) => void)[] = [];

  constructor(name: string) {
    this.name = name;
  }

  /** Listeners must be quick and must not throw; slow work belongs in a `Follower`. */
  subscribe(listener: (fact: F, position: number) => void): void {
    this.#listeners.push(listener);
  }

  /** For `Streams` only. */
  deliver(fact: F, position: number): void {
    for (const listener of this.#listeners) listener(fact, position);
  }
}

/** Gives a fact a position on its stream; the fact is delivered once the transaction is on disk. */
export type Publish = <F>(stream: Stream<F>, fact: F) => number;

/** How many positions are promised to the disk at a time. */
const boundStep = 100_000;

/**
 * The one counter that all streams share, and the order in which their facts become visible: positions are reserved
 * before a transaction, complete when it settles, and `current` never passes one that is pending.
 *
 * No position is given out twice, also not after a crash and also not on streams that live in memory: a bound above
 * all positions is on disk before any position below it is used.
 */
export class Streams {
  readonly #database: Database;
  readonly #counter: PositionCounter;
  #bound: number;
  #extension: Promise<void> | undefined;
  readonly #advanced: ((current: number) => void)[] = [];

  private constructor(database: Database, bound: number) {
    this.#database = database;
    this.#bound = bound;
    this.#counter = new PositionCounter(bound, (current) => {
      for (const listener of this.#advanced) listener(current);
    });
  }

  /** Reads the bound of the last run and starts above it. */
  static async open(database: Database): Promise<Streams> {
    const streams = new Streams(database, await readBound(database.reader<PositionTables>()));
    await streams.#extend();
    return streams;
  }

  /** Every fact at or below this position is committed and has been delivered. */
  get current(): number {
    return this.#counter.current;
  }

  /** Called whenever `current` has grown, after the facts were delivered. */
  onAdvance(listener: (current: number) => void): void {
    this.#advanced.push(listener);
  }

  /**
   * Runs `work` in a database transaction; what it publishes becomes visible when the transaction is on disk and
   * vanishes when it fails. Resolves after delivery has become possible, so a reader that asks next sees the facts
   * as soon as everything with a lower position has settled.
   */
  async write<S, T>(work: (writer: Writer<S>, publish: Publish) => Promise<T>): Promise<T> {
    const reservations: Reservation[] = [];
    const publish: Publish = (stream, fact) => {
      const reservation = this.reserve(stream, fact);
      reservations.push(reservation);
      return reservation.position;
    };
    try {
      const result = await this.#database.transaction<S, T>((writer) => {
        for (const reservation of reservations.splice(0)) reservation.abandon();
        return work(writer, publish);
      });
      for (const reservation of reservations) reservation.complete();
      return result;
    } catch (error) {
      for (const reservation of reservations) reservation.abandon();
      throw error;
    }
  }

  /** Publishes a fact that lives in memory only. */
  announce<F>(stream: Stream<F>, fact: F): number {
    const reservation = this.reserve(stream, fact);
    reservation.complete();
    return reservation.position;
  }

  /** The two phases by hand, for writers that commit on their own: complete or abandon it, always. */
  reserve<F>(stream: Stream<F>, fact: F): Reservation {
    const reservation = this.#counter.reserve((position) => stream.deliver(fact, position));
    if (reservation.position > this.#bound) {
      reservation.abandon();
      throw new Error('stream positions ran out before their bound could be extended');
    }
    if (reservation.position > this.#bound - boundStep / 2) void this.#extend();
    return reservation;
  }

  /** Raises the bound on disk; one extension at a time, a failed one is tried again by the next reservation. */
  #extend(): Promise<void> {
    this.#extension ??= extendBound(this.#database, this.#bound + boundStep)
      .then(
        () => {
          this.#bound += boundStep;
        },
        () => undefined,
      )
      .finally(() => {
        this.#extension = undefined;
      });
    return this.#extension;
  }
}
