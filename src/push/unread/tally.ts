import type { ReadUpTo } from '../../receipts/index.ts';
import type { UnreadMark } from '../unread-mark.ts';
import type { MarkList, StoredMarks } from './mark-list.ts';

export interface UnreadCount {
  readonly notification_count: number;
  /** Number of these notifications that are highlights. */
  readonly highlight_count: number;
}

/** The unread events of a user in a room: the fields of `UnreadCount` are about the main timeline only. */
export interface UnreadCounts extends UnreadCount {
  /** The counts of threads by the id of their root; threads without unread events are left out. */
  readonly threads: ReadonlyMap<string, UnreadCount>;
}

/** The result of an evaluation of newer events. */
export interface NewMarks {
  /** The unread events among the newer events, newest first. */
  readonly marks: readonly UnreadMark[];
  /** Whether older marks are dropped: the user has joined since, or there were too many events to evaluate. */
  readonly dropsOlder: boolean;
  /** Threads (`undefined` for the main timeline) where the user has sent an event since. */
  readonly ownThreads: ReadonlySet<string | undefined>;
  /** Stream positions of the events that were redacted. */
  readonly redacted: ReadonlySet<number>;
}

/** Maximum number of unread events of a room that are counted: clients show "99+", and memory is limited. */
export const maxMarks = 1_000;

/** The unread events (marks) of one user in one room, among the events that were evaluated. */
export class Tally {
  /** Number of events that were evaluated since the tally was saved. */
  unsaved = 0;
  #upTo: number;
  readonly #marks: MarkList;
  /** The argument of the last `dropRead`: another call with it does nothing. */
  #lastDropped: ReadUpTo | undefined;
  /** The counts of all marks; `undefined` when all marks must be counted again. */
  #counts: UnreadCounts | undefined;
  /** The earliest time of sending of a mark, or an earlier time, so that most syncs do not look at the marks. */
  #earliestTime: number;

  constructor(upTo: number, marks: MarkList) {
    this.#upTo = upTo;
    this.#marks = marks;
    this.#earliestTime = earliestTimeOf(marks);
  }

  /** Events up to this stream position were evaluated. */
  get upTo(): number {
    return this.#upTo;
  }

  /** Number of unread events. */
  get size(): number {
    return this.#marks.length;
  }

  /** Whether the marks have their times of sending. Without them, `dropExpired` does nothing. */
  get keepsTimes(): boolean {
    return this.#marks.keepsTimes;
  }

  /** Estimated bytes in memory. */
  get bytes(): number {
    return this.#marks.bytes;
  }

  /** Adds the marks of an evaluation of the events after the old `upTo`. @param read how far the user's receipts reached at that evaluation */
  add(newMarks: NewMarks, upTo: number, read: ReadUpTo): void {
    const { marks, dropsOlder, ownThreads, redacted } = newMarks;
    if (dropsOlder) {
      this.#marks.clear();
      this.#counts = undefined;
    }
    if (ownThreads.size > 0 || redacted.size > 0) {
      this.#keep((stream, threadId) => !ownThreads.has(threadId) && !redacted.has(stream));
    }
    for (let index = marks.length - 1; index >= 0; index--) this.#push(marks[index]!);
    if (this.#marks.length > maxMarks) {
      keepNewest(this.#marks);
      this.#counts = undefined;
    }
    if (this.#lastDropped !== read) this.#lastDropped = undefined;
    this.#upTo = upTo;
  }

  /** Drops the marks of events that the user has read. */
  dropRead(read: ReadUpTo): void {
    if (this.#lastDropped === read) return;
    this.#keep((stream, threadId) => stream > read.thread(threadId));
    this.#lastDropped = read;
  }

  /** Drops the marks of events that were sent before a time, because they have expired. Does nothing if the tally keeps no times. */
  dropExpired(before: number): void {
    if (this.#earliestTime >= before) return;
    const { length } = this.#marks;
    this.#marks.keep((index) => this.#marks.timeAt(index) >= before);
    if (this.#marks.length < length) this.#counts = undefined;
    this.#earliestTime = earliestTimeOf(this.#marks);
  }

  /** Counts the unread events up to a position. */
  counts(upTo: number): UnreadCounts {
    if (upTo < this.#upTo) return countsOf(this.#marks, upTo);
    this.#counts ??= countsOf(this.#marks);
    return this.#counts;
  }

  /** Returns the marks as they are stored. */
  toStored(): StoredMarks {
    return this.#marks.toStored();
  }

  /**
   * Adds a mark without counting or copying the other marks again, because for a user who does not read, another mark
   * is added with each event.
   */
  #push(mark: UnreadMark): void {
    this.#marks.push(mark);
    if (this.keepsTimes) this.#earliestTime = Math.min(this.#earliestTime, mark.sentTs);
    this.#counts &&= recounted(this.#counts, mark, 1);
    if (this.#marks.length <= maxMarks) return;
    const oldest = this.#marks.at(0);
    if (oldest.highlight) return;
    this.#marks.shift();
    this.#counts &&= recounted(this.#counts, oldest, -1);
  }

  #keep(isKept: (stream: number, threadId: string | undefined) => boolean): void {
    const { threads, length } = this.#marks;
    if (length === 0) return;
    const stream = (index: number) => this.#marks.streamAt(index);
    this.#marks.keep((index) => isKept(stream(index), threads.get(stream(index))));
    if (this.#marks.length < length) this.#counts = undefined;
  }
}

/** Returns the earliest time of sending; `Infinity` for a list without marks or without times. */
function earliestTimeOf(marks: MarkList): number {
  if (!marks.keepsTimes) return Number.POSITIVE_INFINITY;
  let earliest = Number.POSITIVE_INFINITY;
  for (let index = 0; index < marks.length; index++) earliest = Math.min(earliest, marks.timeAt(index));
  return earliest;
}

/** Counts the marks up to a position. */
function countsOf(marks: MarkList, upTo = Number.POSITIVE_INFINITY): UnreadCounts {
  if (marks.length === 0) return nothingUnread;
  const main = new Count();
  const threads = new Map<string, Count>();
  for (let index = 0; index < marks.length; index++) {
    const stream = marks.streamAt(index);
    if (stream > upTo) continue;
    const threadId = marks.threads.get(stream);
    const isHighlight = marks.highlights.has(stream);
    if (threadId === undefined) main.add(isHighlight);
    else {
      const thread = threads.get(threadId) ?? new Count();
      threads.set(threadId, thread);
      thread.add(isHighlight);
    }
  }
  const { notification_count, highlight_count } = main;
  return { notification_count, highlight_count, threads };
}

/** Returns the counts with one mark more or less; `undefined` when all marks must be counted again. */
function recounted(counts: UnreadCounts, mark: UnreadMark, change: 1 | -1): UnreadCounts | undefined {
  if (mark.threadId !== undefined) return undefined;
  return {
    notification_count: counts.notification_count + change,
    highlight_count: counts.highlight_count + (mark.highlight ? change : 0),
    threads: counts.threads,
  };
}

class Count implements UnreadCount {
  notification_count = 0;
  highlight_count = 0;

  add(isHighlight: boolean): void {
    this.notification_count++;
    if (isHighlight) this.highlight_count++;
  }
}

/** Removes all but `maxMarks` marks: the oldest first, and highlights last. */
function keepNewest(marks: MarkList): void {
  let excess = marks.length - maxMarks;
  marks.keep((index) => marks.highlights.has(marks.streamAt(index)) || excess-- <= 0);
  const older = marks.length - maxMarks;
  if (older > 0) marks.keep((index) => index >= older);
}

/** The counts of a room in which the user has read everything. */
export const nothingUnread: UnreadCounts = { notification_count: 0, highlight_count: 0, threads: new Map() };
