import type { ReadUpTo } from '../../receipts/index.ts';

/** An event that notifies a user and that they have not read. */
export interface UnreadMark {
  /** Where it is on the stream of rooms. */
  readonly stream: number;
  readonly highlight: boolean;
  /** The root of its thread; `undefined` for the main timeline. */
  readonly threadId: string | undefined;
}

export interface UnreadCount {
  readonly notification_count: number;
  /** How many of them are highlights. */
  readonly highlight_count: number;
}

/** What a user has not read of a room: the members of `UnreadCount` are about the main timeline only. */
export interface UnreadCounts extends UnreadCount {
  /** What of it is in threads, by the id of their root; threads without are left out. */
  readonly threads: ReadonlyMap<string, UnreadCount>;
}

/** What an evaluation of newer events has found. */
export interface NewMarks {
  /** Newest first. */
  readonly marks: readonly UnreadMark[];
  /** Marks that were there before are void: the user has joined since, or there was too much to look at. */
  readonly startsAnew: boolean;
  /** Threads (`undefined` for the main timeline) in which the user has said something since. */
  readonly ownThreads: ReadonlySet<string | undefined>;
  /** Places on the stream of events that were redacted. */
  readonly redacted: ReadonlySet<number>;
}

/** How many unread events of a room are counted: clients show "99+", and the memory of a tally is bounded. */
export const maxMarks = 1_000;

/** What is unread for one user in one room, as far as it was looked at. */
export class Tally {
  /** How many events were evaluated since the tally was saved. */
  unsaved = 0;
  #upTo: number;
  /** Oldest first. */
  #marks: UnreadMark[];
  /** What was dropped last, so that the same need not be looked for again. */
  #dropped: ReadUpTo | undefined;
  /** The counts of all marks. */
  #counts: UnreadCounts | undefined;

  constructor(upTo: number, marks: readonly UnreadMark[]) {
    this.#upTo = upTo;
    this.#marks = [...marks];
  }

  /** Events up to here were evaluated. */
  get upTo(): number {
    return this.#upTo;
  }

  get marks(): readonly UnreadMark[] {
    return this.#marks;
  }

  /** Takes over what was found in events after `upTo` by a user who had read so far. */
  add(found: NewMarks, upTo: number, read: ReadUpTo): void {
    const { marks, startsAnew, ownThreads, redacted } = found;
    if (startsAnew) {
      this.#marks = [];
      this.#counts = undefined;
    }
    if (ownThreads.size > 0 || redacted.size > 0) {
      this.#keep(({ threadId, stream }) => !ownThreads.has(threadId) && !redacted.has(stream));
    }
    for (let index = marks.length - 1; index >= 0; index--) this.#push(marks[index]!);
    if (this.#marks.length > maxMarks) {
      this.#marks = newest(this.#marks);
      this.#counts = undefined;
    }
    if (this.#dropped !== read) this.#dropped = undefined;
    this.#upTo = upTo;
  }

  /** Drops what the user has read. */
  drop(read: ReadUpTo): void {
    if (this.#dropped === read) return;
    this.#keep(({ stream, threadId }) => stream > read.thread(threadId));
    this.#dropped = read;
  }

  /** Counts the events up to a position. */
  counts(upTo: number): UnreadCounts {
    if (upTo < this.#upTo) return countsOf(this.#marks.filter(({ stream }) => stream <= upTo));
    this.#counts ??= countsOf(this.#marks);
    return this.#counts;
  }

  /** Where nobody reads there is one mark more with each event, and nothing is counted or copied anew. */
  #push(mark: UnreadMark): void {
    this.#marks.push(mark);
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

/** Counts with a mark more or less; `undefined` when they must be counted anew. */
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

/** As many marks as are counted: the oldest go first, and highlights last. */
function newest(marks: readonly UnreadMark[]): UnreadMark[] {
  let excess = marks.length - maxMarks;
  return marks.filter(({ highlight }) => highlight || excess-- <= 0).slice(-maxMarks);
}

export const nothingUnread: UnreadCounts = { notification_count: 0, highlight_count: 0, threads: new Map() };
