import { type Cache, type CacheRegistry, MiB, sizeOfJson } from '../../kernel/caches/index.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import { MAIN_TIMELINE, PowerLevels, PushEvent, type RoomEvent } from '../../protocol/index.ts';
import { threadIdOf } from '../../receipts/index.ts';
import type { RoomHead, RoomReader, StoredEvent } from '../../room-engine/index.ts';

/**
 * Number of prepared events in the cache: as many as a user's count looks back, so that they are prepared once for all
 * members of a room who count at the same time.
 */
const maxPrepared = 1_200;

/** The properties of an event for push rules that are the same for all members. */
export interface PreparedEvent {
  readonly event: PushEvent;
  /** The root of its thread; `undefined` for the main timeline. */
  readonly threadId: string | undefined;
  /** Estimated bytes. */
  readonly bytes: number;
}

interface Levels {
  /** The events from which they were made. */
  readonly nids: readonly (number | undefined)[];
  readonly levels: PowerLevels;
}

/** Prepares new events for push rules, once for all members. */
export class PushEvents {
  readonly #engine: RoomReader;
  readonly #events: Cache<number, PreparedEvent>;
  readonly #preparing = new LoadOnce<number, PreparedEvent>();
  readonly #levels = new WeakMap<RoomHead, Levels>();

  constructor(engine: RoomReader, caches: CacheRegistry) {
    this.#engine = engine;
    this.#events = caches.create('push_events', {
      size: maxPrepared,
      maxBytes: 2 * MiB,
      sizeOf: ({ bytes }) => bytes,
    });
  }

  /** Returns the event with the current facts about the room; at once when it is in the cache. */
  get(head: RoomHead, stored: StoredEvent): PreparedEvent | Promise<PreparedEvent> {
    const known = this.#events.get(stored.nid);
    if (known) return known;
    const keep = (prepared: PreparedEvent) => this.#events.set(stored.nid, prepared);
    return this.#preparing.run(stored.nid, () => this.#prepare(head, stored), keep);
  }

  async #prepare(head: RoomHead, stored: StoredEvent): Promise<PreparedEvent> {
    const [levels, threadId] = await Promise.all([this.#levelsOf(head), threadIdOf(this.#engine, stored)]);
    const threadRoot = threadId === MAIN_TIMELINE ? undefined : threadId;
    const event = new PushEvent(stored.event, {
      memberCount: head.memberCount('join'),
      senderMayNotify: (key) => levels.canNotify(stored.event.sender, key),
      threadRoot,
    });
    return { event, threadId: threadRoot, bytes: 1_000 + 2 * sizeOfJson(stored.event.content) };
  }

  async #levelsOf(head: RoomHead): Promise<PowerLevels> {
    const entries = [head.entry('m.room.create', ''), head.entry('m.room.power_levels', '')];
    const nids = entries.map((entry) => entry?.nid);
    const known = this.#levels.get(head);
    if (known?.nids.every((nid, index) => nid === nids[index])) return known.levels;
    const [create, power] = await Promise.all(nids.map((nid) => this.#event(nid)));
    const levels = new PowerLevels(create, power);
    this.#levels.set(head, { nids, levels });
    return levels;
  }

  async #event(nid: number | undefined): Promise<RoomEvent | undefined> {
    return nid === undefined ? undefined : (await this.#engine.events.get(nid))?.event;
  }
}
