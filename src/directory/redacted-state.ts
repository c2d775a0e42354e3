import type { RoomReader, StoredEvent } from '../room-engine/index.ts';

/**
 * Collects state events that were redacted. A redaction is not a state change: the state map still has the id of the
 * redacted event. Therefore followers of state changes do not see redactions. Redactions are collected as they arrive;
 * `take` reads the redacted events.
 */
export class RedactedState {
  readonly #engine: RoomReader;
  /** Ids of the events that were redacted since the last call of `take`. */
  #redacted = new Set<string>();

  constructor(engine: RoomReader) {
    this.#engine = engine;
  }

  /** Starts to collect. From this call on, `take` must be called again and again: it frees the memory. */
  start(): void {
    this.#engine.stream.subscribe(({ stored: { event } }) => {
      if (event.type === 'm.room.redaction' && event.redacts !== undefined) this.#redacted.add(event.redacts);
    });
  }

  /** Returns the events of rooms' current state that were redacted since the last call. */
  async take(): Promise<StoredEvent[]> {
    if (this.#redacted.size === 0) return [];
    const ids = this.#redacted;
    this.#redacted = new Set();
    try {
      const redactedEvents: StoredEvent[] = [];
      for (const id of ids) {
        const stored = await this.#engine.events.getById(id);
        if (stored?.redactedBy !== undefined && (await this.#isInCurrentState(stored)))
          redactedEvents.push(stored);
      }
      return redactedEvents;
    } catch (error) {
      for (const id of ids) this.#redacted.add(id);
      throw error;
    }
  }

  async #isInCurrentState({ nid, event: { roomId, type, stateKey } }: StoredEvent): Promise<boolean> {
    if (stateKey === undefined) return false;
    const head = await this.#engine.heads.get(roomId);
    return head?.entry(type, stateKey)?.nid === nid;
  }
}
