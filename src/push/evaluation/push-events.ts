import { type Cache, type CacheRegistry, MiB, sizeOfJson } from '../../kernel/caches/index.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { LoadTogether } from '../../kernel/load-together.ts';
import { allReady, whenReady } from '../../kernel/when-ready.ts';
import { MAIN_TIMELINE, PowerLevels, PushEvent, type RoomEvent } from '../../protocol/index.ts';
import { threadIdOf } from '../../receipts/index.ts';
import type { RoomHead, RoomReader, StoredEvent } from '../../room-engine/index.ts';
import type { UnreadMark } from '../unread-mark.ts';

/**
 * Maximum number of prepared events in the cache. It exceeds the number of events that one count of unread events
 * evaluates, so that members of a room whose unread events are counted at the same time share the prepared events.
 */
const maxPrepared = 1_200;

/** The properties of an event for push rules that are the same for all members. */
export interface PreparedEvent {
  readonly event: PushEvent;
  /** The root of the event's thread; `undefined` for the main timeline. */
  readonly threadId: string | undefined;
  /** The event as a mark in tallies of unread events, without and with a highlight; all members share these two objects. */
  readonly marks: Record<'plain' | 'highlight', UnreadMark>;
}

const sizeOf = ({ event }: PreparedEvent): number => 1_000 + 2 * sizeOfJson(event.content);

/** The power levels of a room, and the database numbers (nids) of the events that they come from. */
interface Levels {
  readonly create: number | undefined;
  readonly powerLevels: number | undefined;
  readonly levels: PowerLevels;
}

export interface PushEventsDeps {
  readonly engine: RoomReader;
  readonly caches: CacheRegistry;
  /** Reads the events of power levels and of the creation of rooms, by nid. */
  readonly stateEvents: LoadTogether<number, StoredEvent>;
}

/** Prepares events for push rules; a new event is prepared once for all members. */
export class PushEvents {
  readonly #engine: RoomReader;
  readonly #stateEvents: LoadTogether<number, StoredEvent>;
  readonly #events: Cache<number, PreparedEvent>;
  readonly #preparing = new LoadOnce<number, PreparedEvent>();
  readonly #levels = new WeakMap<RoomHead, Levels>();

  constructor({ engine, caches, stateEvents }: PushEventsDeps) {
    this.#engine = engine;
    this.#stateEvents = stateEvents;
    this.#events = caches.create('push_events', {
      size: maxPrepared,
      maxBytes: 2 * MiB,
      sizeOf,
    });
  }

  /**
   * Returns an event prepared with the power levels and member count that the room had when the event was first
   * prepared; without a promise when the prepared event is in the cache.
   */
  get(head: RoomHead, stored: StoredEvent): PreparedEvent | Promise<PreparedEvent> {
    const cached = this.#events.get(stored.nid);
    if (cached) return cached;
    const keep = (prepared: PreparedEvent) => this.#events.set(stored.nid, prepared);
    return this.#preparing.run(stored.nid, async () => this.#prepare(head, stored), keep);
  }

  /**
   * Like `get`, for an old event that few members read: it is not cached. Returns at once for most events when the
   * power levels of the room are in memory.
   */
  getUncached(head: RoomHead, stored: StoredEvent): PreparedEvent | Promise<PreparedEvent> {
    return this.#events.peek(stored.nid) ?? this.#prepare(head, stored);
  }

  #prepare(head: RoomHead, stored: StoredEvent): PreparedEvent | Promise<PreparedEvent> {
    const inputs = allReady<[levels: PowerLevels, threadId: string]>([
      this.levelsOf(head),
      threadIdOf(this.#engine, stored),
    ]);
    return whenReady(inputs, ([levels, threadId]) => {
      const threadRoot = threadId === MAIN_TIMELINE ? undefined : threadId;
      const event = new PushEvent(stored.event, {
        memberCount: head.memberCount('join'),
        senderMayNotify: (key) => levels.canNotify(stored.event.sender, key),
        threadRoot,
      });
      const markWith = (highlight: boolean): UnreadMark => ({
        stream: stored.stream ?? 0,
        highlight,
        threadId: threadRoot,
        sentTs: stored.event.originServerTs,
      });
      const marks = { plain: markWith(false), highlight: markWith(true) };
      return { event, threadId: threadRoot, marks };
    });
  }

  /** Returns the power levels of a room; at once when they are in memory. */
  levelsOf(head: RoomHead): PowerLevels | Promise<PowerLevels> {
    const create = head.entry('m.room.create', '')?.nid;
    const powerLevels = head.entry('m.room.power_levels', '')?.nid;
    const cached = this.#levels.get(head);
    const isCurrent = cached !== undefined && cached.create === create && cached.powerLevels === powerLevels;
    return isCurrent ? cached.levels : this.#readLevels(head, create, powerLevels);
  }

  #readLevels(
    head: RoomHead,
    create: number | undefined,
    powerLevels: number | undefined,
  ): PowerLevels | Promise<PowerLevels> {
    const events = allReady<[create: RoomEvent | undefined, powerLevels: RoomEvent | undefined]>([
      this.#event(create),
      this.#event(powerLevels),
    ]);
    return whenReady(events, ([createEvent, powerLevelsEvent]) => {
      const levels = new PowerLevels(createEvent, powerLevelsEvent);
      this.#levels.set(head, { create, powerLevels, levels });
      return levels;
    });
  }

  #event(nid: number | undefined): RoomEvent | undefined | Promise<RoomEvent | undefined> {
    if (nid === undefined) return undefined;
    const { events } = this.#engine;
    return whenReady(events.peek(nid) ?? this.#stateEvents.get(nid), (stored) => stored?.event);
  }
}
