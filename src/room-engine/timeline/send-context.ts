import { type RoomEvent, type RoomVersion, selectAuthEventKeys, stateMapKey } from '../../protocol/index.ts';
import type { EventToSend } from '../event-to-send.ts';
import type { WritableStateKeys } from '../state/writable-state-keys.ts';
import type { StoredEvent } from '../stored-event.ts';
import type { EventStore } from './event-store.ts';
import type { RoomHead } from './room-head.ts';

const createKey = stateMapKey('m.room.create', '');

/**
 * The auth events of a draft, the state event that it replaces, the event that it redacts and, in room versions 1 and
 * 2, its previous events. They are in memory, so that all checks are synchronous even when caches drop these events.
 */
export class SendContext {
  readonly #events: Map<number, StoredEvent>;
  readonly #store: EventStore;
  readonly #draft: EventToSend;
  #authKeys: { readonly version: RoomVersion; readonly keys: readonly string[] } | undefined;
  /** The event that the draft redacts; `undefined` also when it is unknown. */
  #target: StoredEvent | undefined;

  /** @param events the events of a room that is being created; shared by the contexts of its first events */
  constructor(store: EventStore, draft: EventToSend, events = new Map<number, StoredEvent>()) {
    this.#events = events;
    this.#store = store;
    this.#draft = draft;
  }

  /** The event that the draft redacts; `undefined` when the draft redacts no known event. Call `load` before. */
  get target(): StoredEvent | undefined {
    return this.#target;
  }

  /** `stateMapKey` of the draft's auth events; cached, because they are read several times for each event. */
  authKeys(version: RoomVersion): readonly string[] {
    if (this.#authKeys?.version !== version) {
      const keys = selectAuthEventKeys({ ...this.#draft, stateKey: this.#draft.stateKey }, version);
      this.#authKeys = { version, keys };
    }
    return this.#authKeys.keys;
  }

  /**
   * Loads the events that are not in memory, and prepares the state key of the draft.
   * @param stateKeys given when the event will be stored
   */
  async load(head: RoomHead, stateKeys?: WritableStateKeys): Promise<void> {
    const missing = this.#needed(head).filter((nid) => !this.#find(nid));
    if (missing.length > 0)
      for (const stored of (await this.#store.getMany(missing)).values()) this.add(stored);
    const { type, stateKey, redacts } = this.#draft;
    if (stateKey !== undefined) await stateKeys?.prepare(stateMapKey(type, stateKey));
    if (redacts !== undefined) this.#target = await this.#store.getById(redacts);
  }

  /** Returns whether all events are loaded. Check it again after an await, because the head may have changed. */
  isComplete(head: RoomHead): boolean {
    return this.#needed(head).every((nid) => this.#find(nid) !== undefined);
  }

  /** Adds an event, for instance an event of a room that is being created. */
  add(stored: StoredEvent): void {
    this.#events.set(stored.nid, stored);
  }

  /** Returns an entry of the head's current state. */
  state(head: RoomHead, type: string, stateKey: string): StoredEvent | undefined {
    const entry = head.entry(type, stateKey);
    return entry && this.#find(entry.nid);
  }

  /** Returns a loaded event by its event id. */
  byId(eventId: string): RoomEvent | undefined {
    for (const { event } of this.#events.values()) if (event.eventId === eventId) return event;
    return undefined;
  }

  #find(nid: number): StoredEvent | undefined {
    const loaded = this.#events.get(nid);
    if (loaded) return loaded;
    const cached = this.#store.peek(nid);
    if (cached) this.add(cached);
    return cached;
  }

  #needed(head: RoomHead): number[] {
    const { type, stateKey } = this.#draft;
    const nids: number[] = [];
    const addNid = (key: string) => {
      const entry = head.state.get(key);
      if (entry) nids.push(entry.nid);
    };
    for (const key of this.authKeys(head.version)) addNid(key);
    addNid(createKey);
    if (stateKey !== undefined) addNid(stateMapKey(type, stateKey));
    // Room versions 1 and 2 need the hashes of the referenced events.
    if (head.version.eventReferences === 'pairs') for (const { nid } of head.extremities) nids.push(nid);
    return nids;
  }
}
