import type { ReadUpTo } from '../../receipts/index.ts';
import type { UnreadMark } from '../unread-mark.ts';

export interface UnreadCount {
  readonly notification_count: number;
  /** Number of these notifications that are highlights. */
  readonly highlight_count: number;
}

/** The numbers of unread events of a user in a room. The fields of `UnreadCount` count the main timeline only. */
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
  /** Threads (`undefined` for the main timeline) in which the user has sent an event since. */
  readonly ownThreads: ReadonlySet<string | undefined>;
  /** Positions on the stream of events that were redacted. */
  readonly redacted: ReadonlySet<number>;
}

/** Maximum number of unread events of a room that are counted: clients show "99+", and memory is limited. */
export const maxMarks = 1_000;

/** The unread events (marks) of one user in one room, among the events that were evaluated. */
export class Tally {
  /** Number of events that were evaluated since the tally was saved. */
  unsaved = 0;
  #upTo: number;
  /** Oldest first. */
  #marks: UnreadMark[];
  /** The argument of the last `drop`: another call with it does nothing. */
  #lastDropped: ReadUpTo | undefined;
  /** The counts of all marks. */
  #counts: UnreadCounts | undefined;
  /** The earliest `sentTs` of all marks, so that most syncs need not read the marks. */
  #earliestTs: number;

  constructor(upTo: number, marks: readonly UnreadMark[]) {
    this.#upTo = upTo;
    this.#marks = [...marks];
    this.#earliestTs = earliestTs(marks);
  }

  /** The stream position up to which events were evaluated. */
  get upTo(): number {
    return this.#upTo;
  }

  get marks(): readonly UnreadMark[] {
    return this.#marks;
  }

  /** Adds the marks of an evaluation of the events after the old `upTo`. @param read how far the user's receipts reached at that evaluation */
  add(newMarks: NewMarks, upTo: number, read: ReadUpTo): void {
    const { marks, dropsOlder, ownThreads, redacted } = newMarks;
    if (dropsOlder) {
      this.#marks = [];
      this.#counts = undefined;
    }
    if (ownThreads.size > 0 || redacted.size > 0) {
      this.#keep(({ threadId, stream }) => !ownThreads.has(threadId) && !redacted.has(stream));
    }
    for (let index = marks.length - 1; index >= 0; index--) this.#push(marks[index]!);
    if (this.#marks.length > maxMarks) {
      this.#marks = newestMarks(this.#marks);
      this.#counts = undefined;
    }
    if (this.#lastDropped !== read) this.#lastDropped = undefined;
    this.#upTo = upTo;
  }

  /** Drops the marks of events that the user has read. */
  drop(read: ReadUpTo): void {
    if (this.#lastDropped === read) return;
    this.#keep(({ stream, threadId }) => stream > read.thread(threadId));
    this.#lastDropped = read;
  }

  /** Drops the marks of events that were sent before a time, because they have expired. */
  dropExpired(before: number): void {
    if (this.#earliestTs >= before) return;
    if (this.#marks.some(({ sentTs }) => sentTs < before)) this.#keep(({ sentTs }) => sentTs >= before);
    this.#earliestTs = earliestTs(this.#marks);
  }

  /** Counts the events up to a position. */
  counts(upTo: number): UnreadCounts {
    if (upTo < this.#upTo) return countsOf(this.#marks.filter(({ stream }) => stream <= upTo));
    this.#counts ??= countsOf(this.#marks);
    return this.#counts;
  }

  /**
   * Adds a mark without counting or copying the other marks again, because a user who does not read gets another mark with
   * each event.
   */
  #push(mark: UnreadMark): void {
    this.#marks.push(mark);
    this.#earliestTs = Math.min(this.#earliestTs, mark.sentTs);
    this.#counts &&= recounted(this.#counts, mark, 1);
    const [oldest] = this.#marks;
    if (this.#marks.length <= maxMarks || !oldest || oldest.highlight) return;
    this.#marks.shift();
    this.#counts &&= recounted(this.#counts, oldest, -1);
  }

  #keep(isKept: (mark: UnreadMark) => boolean): void {
    this.#marks = this.#marks.filter(isKept);
    this.#counts = undefined;
  }
}

/** Returns `Infinity` without marks. */
const earliestTs = (marks: readonly UnreadMark[]): number =>
  marks.reduce((earliest, { sentTs }) => Math.min(earliest, sentTs), Number.POSITIVE_INFINITY);

function countsOf(marks: readonly UnreadMark[]): UnreadCounts {
  if (marks.length === 0) return nothingUnread;
  const main = new Count();
  const threads = new Map<string, Count>();
  for (const mark of marks) {
    if (mark.threadId === undefined) main.add(mark);
    else {
      const thread = threads.get(mark.threadId) ?? new Count();
      threads.set(mark.threadId, thread);
      thread.add(mark);
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

  add({ highlight }: UnreadMark): void {
    this.notification_count++;
    if (highlight) this.highlight_count++;
  }
}

/** Returns the `maxMarks` marks to keep: drops the oldest first, and highlights last. */
function newestMarks(marks: readonly UnreadMark[]): UnreadMark[] {
  let excess = marks.length - maxMarks;
  return marks.filter(({ highlight }) => highlight || excess-- <= 0).slice(-maxMarks);
}

export const nothingUnread: UnreadCounts = { notification_count: 0, highlight_count: 0, threads: new Map() };
