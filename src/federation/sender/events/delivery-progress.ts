import type { Clock } from '../../../kernel/clock.ts';
import type { Database } from '../../../kernel/database/index.ts';
import { progressStatements } from '../store.ts';
import type { OutgoingPdu } from '../transactions/outgoing-pdu.ts';

/** The events of a room that a destination lacks. */
interface Missed {
  /** Database number of the last missed event. */
  readonly eventNid: number;
  /** Stream position of the last missed event. */
  readonly stream: number;
  /** Stream position of the first missed event. */
  readonly first: number;
}

/** Unsaved progress of one destination. */
interface DestinationProgress {
  /** By room. */
  readonly missed: Map<number, Missed>;
  /** Stream position up to which the events of a room have arrived, by room. */
  readonly arrived: Map<number, number>;
  /** Stream position up to which the destination has acknowledged events, and the time of the acknowledgement. */
  position: { readonly stream: number; readonly sentTs: number } | undefined;
}

/**
 * Persists which events destinations have received and missed. Collects changes in memory, and writes them together. In
 * memory, a later change replaces an earlier one.
 */
export class DeliveryProgress {
  readonly #database: Database;
  readonly #clock: Clock;
  #unsaved = new Map<string, DestinationProgress>();
  #writing: Promise<void> = Promise.resolve();

  constructor({ database, clock }: { database: Database; clock: Clock }) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Whether all changes are on disk. */
  get isEmpty(): boolean {
    return this.#unsaved.size === 0;
  }

  /** Records that the destination lacks the event and will not receive it from memory. */
  missed(destination: string, { roomNid, nid, stream }: Pick<OutgoingPdu, 'roomNid' | 'nid' | 'stream'>) {
    this.#addMissed(destination, roomNid, { eventNid: nid, stream, first: stream });
  }

  /** Records that the destination has all events of the room up to a stream position. */
  arrived(destination: string, roomNid: number, upTo: number): void {
    const { missed, arrived } = this.#of(destination);
    const before = missed.get(roomNid);
    if (before && before.stream <= upTo) missed.delete(roomNid);
    else if (before) missed.set(roomNid, { ...before, first: Math.max(before.first, upTo + 1) });
    arrived.set(roomNid, Math.max(arrived.get(roomNid) ?? 0, upTo));
  }

  /** Records that the destination has acknowledged the events sent up to a stream position. */
  delivered(destination: string, stream: number): void {
    const progress = this.#of(destination);
    if (stream >= (progress.position?.stream ?? 0)) {
      progress.position = { stream, sentTs: this.#clock.now() };
    }
  }

  /** Resolves when all changes so far are on disk. After a failure they are written with the next changes. */
  flush(): Promise<void> {
    const flushed = this.#writing.then(() => this.#write());
    this.#writing = flushed.catch(() => undefined);
    return flushed;
  }

  async #write(): Promise<void> {
    const progress = this.#unsaved;
    if (progress.size === 0) return;
    this.#unsaved = new Map();
    try {
      await this.#database.batch(progressStatements(rowsOf(progress)));
    } catch (error) {
      this.#restore(progress);
      throw error;
    }
  }

  /** Merges changes that could not be written with newer changes. */
  #restore(older: ReadonlyMap<string, DestinationProgress>): void {
    const newer = this.#unsaved;
    this.#unsaved = new Map(older);
    for (const [destination, { missed, arrived, position }] of newer) {
      for (const [roomNid, upTo] of arrived) this.arrived(destination, roomNid, upTo);
      for (const [roomNid, one] of missed) this.#addMissed(destination, roomNid, one);
      if (position) this.#of(destination).position = position;
    }
  }

  #addMissed(destination: string, roomNid: number, one: Missed): void {
    const { missed } = this.#of(destination);
    const before = missed.get(roomNid);
    if (before && before.stream >= one.stream) return;
    missed.set(roomNid, { ...one, first: Math.min(before?.first ?? one.first, one.first) });
  }

  #of(destination: string): DestinationProgress {
    const unsaved = this.#unsaved.get(destination);
    if (unsaved) return unsaved;
    const progress: DestinationProgress = { missed: new Map(), arrived: new Map(), position: undefined };
    this.#unsaved.set(destination, progress);
    return progress;
  }
}

function rowsOf(progress: ReadonlyMap<string, DestinationProgress>) {
  const rows = {
    arrived: [] as [string, number, number][],
    progress: [] as [number, string, number, number][],
    missed: [] as [string, number, number, number, number][],
    position: [] as [string, number, number][],
  };
  for (const [destination, { missed, arrived, position }] of progress) {
    for (const [roomNid, upTo] of arrived) {
      rows.arrived.push([destination, roomNid, upTo]);
      rows.progress.push([upTo, destination, roomNid, upTo]);
    }
    for (const [roomNid, { eventNid, stream, first }] of missed) {
      rows.missed.push([destination, roomNid, eventNid, stream, first - 1]);
    }
    if (position) rows.position.push([destination, position.stream, position.sentTs]);
  }
  return rows;
}
