import type { Database, Writer } from '../database/database.ts';
import { DurableBound } from './durable-bound.ts';
import { PositionCounter } from './position-counter.ts';

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

/** A position for a fact that is not certain yet: complete or abandon it, always. */
export interface Reservation<F> {
  readonly position: number;
  /**
   * The fact is on disk, or needs none: it is delivered once all lower positions have settled.
   * @param delivered called when that has happened: only then may somebody be told that it did, for whoever looks next
   * at what follows the streams in memory must find it there
   */
  complete(fact: F, delivered?: () => void): void;
  /** The fact never happened; its position stays unused. */
  abandon(): void;
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
  readonly #bound: DurableBound;
  readonly #advanced: ((current: number) => void)[] = [];

  private constructor(database: Database, bound: DurableBound, last: number) {
    this.#database = database;
    this.#bound = bound;
    this.#counter = new PositionCounter(last, (current) => {
      for (const listener of this.#advanced) listener(current);
    });
  }

  /** Starts above every position that an earlier run may have given out. */
  static async open(database: Database): Promise<Streams> {
    return new Streams(database, ...(await DurableBound.open(database, 'positions', boundStep)));
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
   * vanishes when it fails. Resolves when it has been delivered, so that a reader that asks next sees it.
   */
  async write<S, T>(work: (writer: Writer<S>, publish: Publish) => Promise<T>): Promise<T> {
    let published: { complete(): Promise<void>; abandon(): void }[] = [];
    const abandonAll = () => {
      for (const one of published) one.abandon();
      published = [];
    };
    const publish: Publish = (stream, fact) => {
      const reservation = this.reserve(stream);
      published.push({
        complete: () => new Promise((resolve) => reservation.complete(fact, resolve)),
        abandon: () => reservation.abandon(),
      });
      return reservation.position;
    };
    try {
      const result = await this.#database.transaction<S, T>((writer) => {
        abandonAll(); // of an earlier attempt: the database may run `work` again
        return work(writer, publish);
      });
      await Promise.all(published.map((one) => one.complete()));
      return result;
    } catch (error) {
      abandonAll();
      throw error;
    }
  }

  /** Publishes a fact that lives in memory only. */
  announce<F>(stream: Stream<F>, fact: F): number {
    const reservation = this.reserve(stream);
    reservation.complete(fact);
    return reservation.position;
  }

  /** The two phases by hand, for writers that commit on their own. */
  reserve<F>(stream: Stream<F>): Reservation<F> {
    const reservation = this.#counter.reserve();
    if (!this.#bound.covers(reservation.position)) {
      reservation.abandon();
      throw new Error('stream positions ran out before their bound could be extended');
    }
    return {
      position: reservation.position,
      complete: (fact, delivered) =>
        reservation.complete((position) => {
          stream.deliver(fact, position);
          delivered?.();
        }),
      abandon: () => reservation.abandon(),
    };
  }
}
