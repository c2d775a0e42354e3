import type { Statement } from '../kernel/database/index.ts';
import type { StoredEvent } from './stored-event.ts';

/** Collects the index rows of one batch of events; they are written in the transaction that writes the events. */
export interface IndexBatch {
  /**
   * Adds the index rows of an event.
   * @param stored has `redactedBy` when the redaction of the event arrived first, or is written together with the event
   * @param redacts the event that `stored` redacts, when the redaction takes effect
   */
  add(stored: StoredEvent, redacts: StoredEvent | undefined): void;
  statements(): readonly Statement[];
}

/** An index of events, for instance of relations, that is written together with them; supplied at composition. */
export interface EventIndex {
  /** Begins a batch: the index rows of one transaction. */
  batch(): IndexBatch;
}

const emptyBatch: IndexBatch = { add: () => undefined, statements: () => [] };

/** Indexes nothing. */
export const noEventIndex: EventIndex = { batch: () => emptyBatch };
