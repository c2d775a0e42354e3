import type { Clock } from '../../../kernel/clock.ts';
import type { Database } from '../../../kernel/database/index.ts';
import { progressStatements } from '../store.ts';
import type { OutgoingPdu } from './outgoing-pdu.ts';

interface Missed {
  readonly eventNid: number;
  readonly stream: number;
  /** Where the first event is on the stream that is missed. */
  readonly first: number;
}

/** What is to be written about one destination. */
interface DestinationProgress {
  readonly missed: Map<number, Missed>;
  /** Room to the last place on the stream that has arrived. */
  readonly arrived: Map<number, number>;
  position: { readonly stream: number; readonly sentTs: number } | undefined;
}

/**
 * What is to be remembered across restarts about what destinations have and lack: collected in memory, where later
 * notes replace earlier ones, and written together.
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

  /** Whether everything is on disk. */
  get isEmpty(): boolean {
    return this.#unsaved.size === 0;
  }

  /** The destination has not got the event, and will not get it from memory. */
  missed(destination: string, { roomNid, nid, stream }: Pick<OutgoingPdu, 'roomNid' | 'nid' | 'stream'>) {
    this.#addMissed(destination, roomNid, { eventNid: nid, stream, first: stream });
  }

  /** Of that room the destination has everything up to that place on the stream. */
  arrived(destination: string, roomNid: number, upTo: number): void {
    const { missed, arrived } = this.#of(destination);
    const before = missed.get(roomNid);
    if (before && before.stream <= upTo) missed.delete(roomNid);
    else if (before) missed.set(roomNid, { ...before, first: Math.max(before.first, upTo + 1) });
    arrived.set(roomNid, Math.max(arrived.get(roomNid) ?? 0, upTo));
  }

  /** The destination has acknowledged what was sent up to that place on the stream. */
  delivered(destination: string, stream: number): void {
    const notes = this.#of(destination);
    if (stream >= (notes.position?.stream ?? 0)) {
      notes.position = { stream, sentTs: this.#clock.now() };
    }
  }

  /** Whether there is a note, not yet on disk, that the destination lacks something. */
  isMissing(destination: string): boolean {
    return (this.#unsaved.get(destination)?.missed.size ?? 0) > 0;
  }

  /** Resolves when all notes so far are on disk. When that fails they are written with the next ones. */
  flush(): Promise<void> {
    const flushed = this.#writing.then(() => this.#write());
    this.#writing = flushed.catch(() => undefined);
    return flushed;
  }

  async #write(): Promise<void> {
    const notes = this.#unsaved;
    if (notes.size === 0) return;
    this.#unsaved = new Map();
    try {
      await this.#database.batch(progressStatements(rowsOf(notes)));
    } catch (error) {
      this.#restore(notes);
      throw error;
    }
  }

  /** Notes that could not be written are older than those that have come since. */
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
    const known = this.#unsaved.get(destination);
    if (known) return known;
    const notes: DestinationProgress = { missed: new Map(), arrived: new Map(), position: undefined };
    this.#unsaved.set(destination, notes);
    return notes;
  }
}

function rowsOf(notes: ReadonlyMap<string, DestinationProgress>) {
  const rows = {
    arrived: [] as [string, number, number][],
    progress: [] as [number, string, number, number][],
    missed: [] as [string, number, number, number, number][],
    position: [] as [string, number, number][],
  };
  for (const [destination, { missed, arrived, position }] of notes) {
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
