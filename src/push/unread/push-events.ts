import { RecentlyUsed } from '../../kernel/caches/index.ts';
import { MAIN_TIMELINE, PowerLevels, PushEvent, type RoomEvent } from '../../protocol/index.ts';
import { threadIdOf } from '../../receipts/index.ts';
import type { RoomEngine, RoomHead, StoredEvent } from '../../room-engine/index.ts';

/** How many events stay prepared for rules; each is as large as the event. */
const remembered = 256;

/** What of an event is the same for all members. */
export interface PreparedEvent {
  readonly event: PushEvent;
  /** The root of its thread; `undefined` for the main timeline. */
  readonly threadId: string | undefined;
}

interface Levels {
  /** What they were made from. */
  readonly nids: readonly (number | undefined)[];
  readonly levels: PowerLevels;
}

/** New events prepared for push rules, once for all members who look at them. */
export class PushEvents {
  readonly #engine: RoomEngine;
  readonly #events = new RecentlyUsed<number, PreparedEvent>({ max: remembered });
  readonly #levels = new WeakMap<RoomHead, Levels>();

  constructor(engine: RoomEngine) {
    this.#engine = engine;
  }

  /** The event when it is prepared already. */
  peek(stored: StoredEvent): PreparedEvent | undefined {
    return this.#events.get(stored.nid);
  }

  /** The event with the facts about the room as they are now. */
  async get(head: RoomHead, stored: StoredEvent): Promise<PreparedEvent> {
    const known = this.#events.get(stored.nid);
    if (known) return known;
    const [levels, threadId] = await Promise.all([this.#levelsOf(head), threadIdOf(this.#engine, stored)]);
    const threadRoot = threadId === MAIN_TIMELINE ? undefined : threadId;
    const event = new PushEvent(stored.event, {
      memberCount: head.memberCount('join'),
      senderMayNotify: (key) => levels.canNotify(stored.event.sender, key),
      threadRoot,
    });
    const prepared = { event, threadId: threadRoot };
    this.#events.set(stored.nid, prepared);
    return prepared;
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
