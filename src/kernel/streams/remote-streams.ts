import { type Clock, sleep } from '../clock.ts';
import type { Logger } from '../observability/logger.ts';
import type { PublishedFact, PublishedRange } from './published-facts.ts';
import { deliver, type ListenerFailed, type Stream } from './stream.ts';
import type { StreamReader } from './stream-reader.ts';

export interface RemoteStreamsDeps {
  /** The writer's `current` when this process begins to follow; earlier facts are read from the database. */
  readonly current: number;
  /**
   * Reads lost facts: those at the positions in `(after, upTo]`, in their order. Is called again after it has rejected.
   * Resolves with `undefined` when the facts can never be read. Absent: lost facts can never be read.
   */
  readonly readMissing?:
    | ((after: number, upTo: number) => Promise<readonly PublishedFact[] | undefined>)
    | undefined;
  /** Called once when lost facts cannot be read: caches that follow the streams are outdated, and no fact is delivered any more. */
  readonly onLost?: (error: Error) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A stream with any kind of facts, which the codec of the stream decodes. */
// biome-ignore lint/suspicious/noExplicitAny: the kinds of facts differ from stream to stream
export type AnyStream = Stream<any>;

/**
 * Maximum number of ranges that wait while an earlier one is read or decoded. Further ranges are dropped, and their
 * facts are read later like those of lost ranges.
 */
const maxWaiting = 10_000;

/** Milliseconds of the first backoff after facts could not be read or decoded. */
const minBackoff = 100;

/** Maximum milliseconds of a backoff. */
const maxBackoff = 60_000;

/**
 * The reading half of the streams in a process that does not write: receives the ranges that `LocalStreams.onPublish`
 * produces in the main process, and delivers their facts to the listeners in the order of their positions. A lost range
 * is noticed when the next one arrives. Its facts are read (`readMissing`) before later facts are delivered. If they
 * cannot be read, the process must drop its caches.
 */
export class RemoteStreams implements StreamReader {
  readonly #deps: RemoteStreamsDeps;
  readonly #streams = new Map<string, AnyStream>();
  readonly #advanceListeners: ((current: number) => void)[] = [];
  readonly #closing = new AbortController();
  readonly #waiting: PublishedRange[] = [];
  #current: number;
  #isFollowing = false;
  #working: Promise<void> | undefined;

  constructor(deps: RemoteStreamsDeps) {
    this.#deps = deps;
    this.#current = deps.current;
  }

  get current(): number {
    return this.#current;
  }

  onAdvance(listener: (current: number) => void): void {
    this.#advanceListeners.push(listener);
  }

  /** Begins to deliver the facts of these streams, also facts that were received before; ignores facts of other streams. */
  follow(...streams: readonly AnyStream[]): void {
    for (const stream of streams) this.#streams.set(stream.name, stream);
    this.#isFollowing = true;
    this.#deliverLater();
  }

  /** Receives a range from the bus. Ranges that were delivered before have no effect. */
  receive(range: PublishedRange): void {
    if (this.#closing.signal.aborted || this.#waiting.length >= maxWaiting) return;
    this.#waiting.push(range);
    this.#deliverLater();
  }

  /** Resolves when all ranges that were received have been delivered. */
  async settled(): Promise<void> {
    await this.#working;
  }

  /** Ends the delivery of facts. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#working;
  }

  #deliverLater(): void {
    if (this.#isFollowing && this.#waiting.length > 0) this.#working ??= this.#work();
  }

  async #work(): Promise<void> {
    for (let range = this.#waiting.shift(); range; range = this.#waiting.shift()) {
      if (range.after > this.#current) await this.#fillGap(range.after);
      if (this.#closing.signal.aborted) break;
      await this.#deliver(range.facts, range.upTo);
    }
    this.#working = undefined;
  }

  async #fillGap(upTo: number): Promise<void> {
    const after = this.#current;
    this.#deps.log.warn({ after, upTo }, 'Facts of the streams were lost and are read again');
    const read = await this.#retry('Lost facts could not be read', async () => ({
      facts: await this.#deps.readMissing?.(after, upTo),
    }));
    if (read?.facts) await this.#deliver(read.facts, upTo);
    else if (read) this.#reportLoss(new Error(`the facts in (${after}, ${upTo}] of the streams are lost`));
  }

  #reportLoss(error: Error): void {
    this.#closing.abort();
    this.#waiting.length = 0;
    this.#deps.onLost?.(error);
  }

  async #deliver(facts: readonly PublishedFact[], upTo: number): Promise<void> {
    const before = this.#current;
    for (const { stream: name, position, fact } of facts) {
      const stream = this.#streams.get(name);
      if (!stream || position <= this.#current) continue;
      const decoded = await this.#decode(stream, position, fact);
      if (!decoded) return;
      this.#current = position;
      deliver(stream, decoded.fact, position, this.#listenerFailed);
    }
    if (this.#closing.signal.aborted) return;
    this.#current = Math.max(this.#current, upTo);
    if (this.#current > before) this.#notifyAdvance();
  }

  #notifyAdvance(): void {
    for (const listener of this.#advanceListeners) {
      try {
        listener(this.#current);
      } catch (error) {
        this.#deps.log.error({ err: error, position: this.#current }, 'A listener of the streams failed');
      }
    }
  }

  #decode(stream: AnyStream, position: number, fact: PublishedFact['fact']) {
    return this.#retry(
      `The fact at ${position} of the stream ${stream.name} could not be decoded`,
      async () => ({
        fact: await stream.codec.decode(fact),
      }),
    );
  }

  /**
   * Repeats `work` until it succeeds, since no fact may be skipped. Resolves with `undefined` when the delivery ends.
   */
  async #retry<T>(failure: string, work: () => Promise<T>): Promise<T | undefined> {
    for (
      let backoff = minBackoff;
      !this.#closing.signal.aborted;
      backoff = Math.min(backoff * 2, maxBackoff)
    ) {
      try {
        return await work();
      } catch (error) {
        this.#deps.log.error({ err: error }, failure);
        await sleep(this.#deps.clock, backoff, this.#closing.signal);
      }
    }
    return undefined;
  }

  readonly #listenerFailed: ListenerFailed = (error, stream, position) =>
    this.#deps.log.error({ err: error, stream, position }, 'A listener of a stream failed');
}
