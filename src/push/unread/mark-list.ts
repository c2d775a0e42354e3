import type { UnreadMark } from '../unread-mark.ts';

/** The unread events of one user in one room (a tally), as they are stored. */
export interface StoredMarks {
  /** Positions on the stream of rooms, oldest first. */
  readonly streams: readonly number[];
  /**
   * The times of sending in milliseconds since the epoch, in the order of `streams`, null where a time is not known;
   * absent if the list keeps no times.
   */
  readonly times?: readonly (number | null)[];
  /** Positions of the events that a push rule highlights. */
  readonly highlights: readonly number[];
  /** Positions of the events in threads, each with the root of the thread. */
  readonly threads: readonly (readonly [stream: number, rootId: string])[];
}

/** Estimated bytes of a list without marks. */
const listBytes = 300;

/** Estimated bytes of a mark. */
const markBytes = 10;

/** Estimated additional bytes of the time of a mark. */
const timeBytes = 10;

/** Estimated additional bytes of a mark that is a highlight. */
const highlightBytes = 40;

/** Estimated additional bytes of a mark in a thread. */
const threadBytes = 150;

/** The estimated size rounds the number of marks up to a multiple of this, so that it changes rarely. */
const marksPerStep = 8;

const noHighlights: ReadonlySet<number> = new Set();
const noThreads: ReadonlyMap<number, string> = new Map();

/**
 * The unread events (marks) of one user in one room, oldest first. Columns of numbers take much less memory than an
 * object for each mark; few events are highlights or in threads.
 */
export class MarkList {
  #streams: number[] = [];
  /** Milliseconds since the epoch, `Infinity` where a time is not known; `undefined` if the list keeps no times. */
  #times: number[] | undefined;
  #highlights: Set<number> | undefined;
  #threads: Map<number, string> | undefined;

  /** @param keepsTimes whether `timeAt` returns the times of sending, which only expiry of messages needs */
  constructor(keepsTimes: boolean) {
    if (keepsTimes) this.#times = [];
  }

  /** Reads a stored list. */
  static fromStored({ streams, times, highlights, threads }: StoredMarks): MarkList {
    const list = new MarkList(times !== undefined);
    list.#streams = [...streams];
    list.#times = times?.map((time) => time ?? Number.POSITIVE_INFINITY);
    if (highlights.length > 0) list.#highlights = new Set(highlights);
    if (threads.length > 0) list.#threads = new Map(threads);
    return list;
  }

  /** Whether `timeAt` returns the times of sending. */
  get keepsTimes(): boolean {
    return this.#times !== undefined;
  }

  /** Number of marks. */
  get length(): number {
    return this.#streams.length;
  }

  /** Estimated bytes in memory. */
  get bytes(): number {
    return (
      listBytes +
      (markBytes + (this.#times ? timeBytes : 0)) * Math.ceil(this.length / marksPerStep) * marksPerStep +
      highlightBytes * (this.#highlights?.size ?? 0) +
      threadBytes * (this.#threads?.size ?? 0)
    );
  }

  /** Positions of the events that a push rule highlights. */
  get highlights(): ReadonlySet<number> {
    return this.#highlights ?? noHighlights;
  }

  /** Maps the position of each event in a thread to the root of the thread. */
  get threads(): ReadonlyMap<number, string> {
    return this.#threads ?? noThreads;
  }

  /** Returns the position of an event on the stream of rooms. */
  streamAt(index: number): number {
    return this.#streams[index]!;
  }

  /** Returns the time that the sender claimed, in milliseconds since the epoch; `Infinity` if it is not known. */
  timeAt(index: number): number {
    return this.#times?.[index] ?? Number.POSITIVE_INFINITY;
  }

  /** Returns the mark at an index, from 0 for the oldest. */
  at(index: number): UnreadMark {
    const stream = this.streamAt(index);
    return {
      stream,
      highlight: this.highlights.has(stream),
      threadId: this.threads.get(stream),
      sentTs: this.timeAt(index),
    };
  }

  /** Adds the newest mark. */
  push({ stream, highlight, threadId, sentTs }: UnreadMark): void {
    this.#streams.push(stream);
    this.#times?.push(sentTs);
    if (highlight) {
      this.#highlights ??= new Set();
      this.#highlights.add(stream);
    }
    if (threadId !== undefined) {
      this.#threads ??= new Map();
      this.#threads.set(stream, threadId);
    }
  }

  /** Removes the oldest mark. */
  shift(): void {
    const stream = this.#streams.shift();
    this.#times?.shift();
    if (stream !== undefined) this.#forget(stream);
  }

  /** Keeps only the marks that `isKept` selects by their index. */
  keep(isKept: (index: number) => boolean): void {
    const [streams, times] = [this.#streams, this.#times];
    const kept: number[] = [];
    for (let index = 0; index < streams.length; index++) {
      if (isKept(index)) kept.push(index);
      else this.#forget(streams[index]!);
    }
    if (kept.length === streams.length) return;
    this.#streams = kept.map((index) => streams[index]!);
    this.#times = times && kept.map((index) => times[index]!);
  }

  /** Removes all marks. */
  clear(): void {
    this.#streams = [];
    if (this.#times) this.#times = [];
    this.#highlights = undefined;
    this.#threads = undefined;
  }

  /** Returns the list as it is stored. */
  toStored(): StoredMarks {
    const times = this.#times?.map((time) => (Number.isFinite(time) ? time : null));
    return {
      streams: this.#streams,
      ...(times && { times }),
      highlights: [...this.highlights],
      threads: [...this.threads],
    };
  }

  #forget(stream: number): void {
    this.#highlights?.delete(stream);
    if (this.#highlights?.size === 0) this.#highlights = undefined;
    this.#threads?.delete(stream);
    if (this.#threads?.size === 0) this.#threads = undefined;
  }
}
