import type { Database } from '../../kernel/database/index.ts';
import type { Reservation } from '../../kernel/streams/index.ts';
import type { StateKeys } from '../state/state-keys.ts';
import type { RoomFact } from '../stored-event.ts';
import type { EventStore } from './event-store.ts';
import type { RoomHeads } from './room-heads.ts';
import { type EventWrite, WriteBatch } from './write-batch.ts';

interface Pending {
  readonly write: EventWrite;
  readonly reservation: Reservation<RoomFact>;
  readonly fact: RoomFact;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Writes events to disk, many at a time: while one batch is being committed the next one gathers, and all of a batch
 * share one flush. Events of one room are committed in the order in which they were staged.
 */
export class EventWriter {
  readonly #database: Database;
  readonly #stateKeys: StateKeys;
  readonly #heads: RoomHeads;
  readonly #events: EventStore;
  #gathering: Pending[] = [];
  #flushing: Promise<void> | undefined;

  constructor(parts: { database: Database; stateKeys: StateKeys; heads: RoomHeads; events: EventStore }) {
    this.#database = parts.database;
    this.#stateKeys = parts.stateKeys;
    this.#heads = parts.heads;
    this.#events = parts.events;
  }

  /**
   * Takes an event that the head holds already. Resolves when it is on disk and published; rejects when it is not,
   * and then the head is broken and everything staged on it after this event rejects as well.
   */
  stage(write: EventWrite, reservation: Reservation<RoomFact>, fact: RoomFact): Promise<void> {
    this.#heads.commitBegins(write.head);
    this.#events.remember(write.stored);
    return new Promise((resolve, reject) => {
      this.#gathering.push({ write, reservation, fact, resolve, reject });
      this.#flushing ??= this.#flush();
    });
  }

  /** Resolves when everything that was staged has settled. */
  async settled(): Promise<void> {
    await this.#flushing;
  }

  async #flush(): Promise<void> {
    await new Promise(setImmediate); // what this turn of the event loop still stages comes along
    while (this.#gathering.length > 0) {
      const pending = this.#gathering;
      this.#gathering = [];
      await this.#commit(pending);
    }
    this.#flushing = undefined;
  }

  async #commit(pending: readonly Pending[]): Promise<void> {
    const lost = pending.filter(({ write }) => write.head.broken);
    const kept = lost.length === 0 ? pending : pending.filter(({ write }) => !write.head.broken);
    for (const one of lost) this.#fail(one, new Error('an earlier event of the room could not be stored'));
    if (kept.length === 0) return;
    const batch = new WriteBatch(this.#stateKeys);
    try {
      const texts = await Promise.all(kept.map(({ write }) => write.json));
      for (const [index, { write }] of kept.entries()) batch.add(write, texts[index] ?? '');
      await this.#database.batch(batch.statements());
    } catch (error) {
      for (const one of kept) this.#fail(one, error);
      return;
    }
    this.#stateKeys.saved(batch.newStateKeys);
    for (const { write, reservation, fact, resolve } of kept) {
      this.#heads.commitEnds(write.head, true);
      reservation.complete(fact);
      resolve();
    }
  }

  #fail({ write, reservation, reject }: Pending, error: unknown): void {
    this.#events.forget(write.stored);
    if (write.redacts) write.redacts.redactedBy = undefined;
    this.#heads.commitEnds(write.head, false);
    reservation.abandon();
    reject(error);
  }
}
