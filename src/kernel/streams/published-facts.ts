import type { JsonValue } from '../../protocol/index.ts';
import type { Logger } from '../observability/logger.ts';
import type { Stream } from './stream.ts';

/** A fact as another process receives it. */
export interface PublishedFact {
  /** `Stream.name`. */
  readonly stream: string;
  readonly position: number;
  /** As the stream's codec has encoded it. */
  readonly fact: JsonValue;
}

/**
 * All facts of the positions in `(after, upTo]`, in their order; positions without a fact stay unused. Each range
 * begins where the previous one ends, so that a process notices a lost range when the next one arrives. A range with
 * equal bounds and no facts only announces the current position of the writer.
 */
export interface PublishedRange {
  readonly after: number;
  readonly upTo: number;
  readonly facts: readonly PublishedFact[];
}

export type PublishListener = (range: PublishedRange) => void;

/** Encodes facts when they are delivered and publishes them range by range, for a bus between processes. */
export class FactPublisher {
  readonly #listeners = new Set<PublishListener>();
  readonly #log: Logger;
  #facts: PublishedFact[] = [];
  #after: number;
  #isIncomplete = false;

  constructor(current: number, log: Logger) {
    this.#after = current;
    this.#log = log;
  }

  /** @returns a function that ends the subscription */
  subscribe(listener: PublishListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Encodes a fact for the next range. */
  add<F>(stream: Stream<F>, fact: F, position: number): void {
    try {
      this.#facts.push({ stream: stream.name, position, fact: stream.codec.encode(fact) });
    } catch (error) {
      this.#isIncomplete = true;
      this.#log.error({ err: error, stream: stream.name, position }, 'A fact could not be encoded');
    }
  }

  /**
   * Publishes the facts that were added since the last range. A range with a fact that could not be encoded is not
   * published, so that other processes notice a gap.
   */
  advanced(current: number): void {
    const range: PublishedRange = { after: this.#after, upTo: current, facts: this.#facts };
    const isComplete = !this.#isIncomplete;
    this.#after = current;
    this.#facts = [];
    this.#isIncomplete = false;
    if (!isComplete) return;
    for (const listener of this.#listeners) {
      try {
        listener(range);
      } catch (error) {
        this.#log.error({ err: error, upTo: current }, 'Facts could not be published to another process');
      }
    }
  }
}
