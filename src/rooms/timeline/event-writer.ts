import type { Database } from '../../kernel/database/index.ts';
import type { BackgroundSigner } from '../../kernel/signing/index.ts';
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

/** Events that are signed together. */
interface SigningGroup {
  readonly pending: readonly Pending[];
  /** In the same order; set when they are there, as is `failure` when they never will be. */
  signatures?: readonly string[];
  failure?: unknown;
  readonly settled: Promise<void>;
}

/**
 * Signs events and writes them to disk, many at a time. What is staged in one turn of the event loop is signed
 * together; what has been signed while a batch was being committed is the next batch, and shares one flush. Events of
 * one room are committed in the order in which they were staged.
 */
export class EventWriter {
  readonly #database: Database;
  readonly #stateKeys: StateKeys;
  readonly #heads: RoomHeads;
  readonly #events: EventStore;
  readonly #signer: BackgroundSigner;
  #staged: Pending[] = [];
  readonly #signing: SigningGroup[] = [];
  #committing: Promise<void> | undefined;

  constructor(parts: {
    database: Database;
    stateKeys: StateKeys;
    heads: RoomHeads;
    events: EventStore;
    signer: BackgroundSigner;
  }) {
    this.#database = parts.database;
    this.#stateKeys = parts.stateKeys;
    this.#heads = parts.heads;
    this.#events = parts.events;
    this.#signer = parts.signer;
  }

  /**
   * Takes an event that the head holds already. Resolves when it is on disk and published; rejects when it is not,
   * and then the head is broken and everything staged on it after this event rejects as well.
   */
  stage(write: EventWrite, reservation: Reservation<RoomFact>, fact: RoomFact): Promise<void> {
    this.#heads.commitBegins(write.head);
    this.#events.remember(write.stored);
    return new Promise((resolve, reject) => {
      if (this.#staged.length === 0) setImmediate(() => this.#signStaged());
      this.#staged.push({ write, reservation, fact, resolve, reject });
    });
  }

  /** Resolves when everything that was staged has settled. */
  async settled(): Promise<void> {
    while (this.#staged.length > 0 || this.#committing) {
      if (this.#committing) await this.#committing;
      else await new Promise(setImmediate);
    }
  }

  #signStaged(): void {
    const pending = this.#staged;
    this.#staged = [];
    const signing = this.#signer.sign(pending.map(({ write }) => write.unsigned.signedText));
    const group: SigningGroup = {
      pending,
      settled: signing.then(
        (signatures) => {
          group.signatures = signatures;
        },
        (error) => {
          group.failure = error;
        },
      ),
    };
    this.#signing.push(group);
    this.#committing ??= this.#commitAll();
  }

  async #commitAll(): Promise<void> {
    for (let first = this.#signing[0]; first; first = this.#signing[0]) {
      await first.settled;
      await this.#commit(this.#takeSigned());
    }
    this.#committing = undefined;
  }

  /** The groups at the front that are signed, without their events that can not be stored. */
  #takeSigned(): { kept: Pending[]; texts: string[] } {
    const kept: Pending[] = [];
    const texts: string[] = [];
    for (let group = this.#signing[0]; group?.signatures ?? group?.failure; group = this.#signing[0]) {
      this.#signing.shift();
      for (const [index, one] of group.pending.entries()) {
        const signature = group.signatures?.[index];
        if (signature === undefined) this.#fail(one, group.failure);
        else if (one.write.head.broken) this.#fail(one, lostWithEarlier());
        else {
          kept.push(one);
          texts.push(one.write.unsigned.complete(signature));
        }
      }
    }
    return { kept, texts };
  }

  async #commit({ kept, texts }: { kept: readonly Pending[]; texts: readonly string[] }): Promise<void> {
    if (kept.length === 0) return;
    const batch = new WriteBatch(this.#stateKeys);
    try {
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

const lostWithEarlier = () => new Error('an earlier event of the room could not be stored');
