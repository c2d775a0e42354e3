import { type Cache, type CacheRegistry, MiB, sizeOfJson } from '../../kernel/caches/index.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { LoadTogether } from '../../kernel/load-together.ts';
import { allReady, whenReady } from '../../kernel/when-ready.ts';
import { MAIN_TIMELINE, PowerLevels, PushEvent, type RoomEvent } from '../../protocol/index.ts';
import { threadIdOf } from '../../receipts/index.ts';
import type { RoomHead, RoomReader, StoredEvent } from '../../room-engine/index.ts';
import type { UnreadMark } from '../unread-mark.ts';

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
  /** Its marks for members whom it notifies, without and with a highlight: all members share them. */
  readonly marks: Record<'plain' | 'highlight', UnreadMark>;
}

const sizeOf = ({ event }: PreparedEvent): number => 1_000 + 2 * sizeOfJson(event.content);

interface Levels {
  /** The nids of the events from which they were made. */
  readonly create: number | undefined;
  readonly power: number | undefined;
  readonly levels: PowerLevels;
}

export interface PushEventsDeps {
  readonly engine: RoomReader;
  readonly caches: CacheRegistry;
  /** Reads the events of power levels and of the creation of rooms, by nid. */
  readonly stateEvents: LoadTogether<number, StoredEvent>;
}

/** Prepares new events for push rules, once for all members. */
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
   * Returns an event with the current power levels and member count of the room; without a promise when it is
   * in the cache.
   */
  get(head: RoomHead, stored: StoredEvent): PreparedEvent | Promise<PreparedEvent> {
    const known = this.#events.get(stored.nid);
    if (known) return known;
    const keep = (prepared: PreparedEvent) => this.#events.set(stored.nid, prepared);
    return this.#preparing.run(stored.nid, async () => this.#prepare(head, stored), keep);
  }

  /**
   * Like `get`, for an old event that few members look at: it is not cached. Returns at once for most events when the
   * power levels of the room are in memory.
   */
  getUncached(head: RoomHead, stored: StoredEvent): PreparedEvent | Promise<PreparedEvent> {
    return this.#events.peek(stored.nid) ?? this.#prepare(head, stored);
  }

  #prepare(head: RoomHead, stored: StoredEvent): PreparedEvent | Promise<PreparedEvent> {
    const inputs = allReady<[PowerLevels, string]>([this.levelsOf(head), threadIdOf(this.#engine, stored)]);
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
    const power = head.entry('m.room.power_levels', '')?.nid;
    const known = this.#levels.get(head);
    const isKnown = known !== undefined && known.create === create && known.power === power;
    return isKnown ? known.levels : this.#readLevels(head, create, power);
  }

  #readLevels(
    head: RoomHead,
    create: number | undefined,
    power: number | undefined,
  ): PowerLevels | Promise<PowerLevels> {
    const events = allReady<[RoomEvent | undefined, RoomEvent | undefined]>([
      this.#event(create),
      this.#event(power),
    ]);
    return whenReady(events, (found) => {
      const levels = new PowerLevels(...found);
      this.#levels.set(head, { create, power, levels });
      return levels;
    });
  }

  #event(nid: number | undefined): RoomEvent | undefined | Promise<RoomEvent | undefined> {
    if (nid === undefined) return undefined;
    const { events } = this.#engine;
    return whenReady(events.peek(nid) ?? this.#stateEvents.get(nid), (stored) => stored?.event);
  }
}
