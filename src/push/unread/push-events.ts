import { LRUCache } from 'lru-cache';
import { PowerLevels, PushEvent, type RoomEvent } from '../../protocol/index.ts';
import type { RoomEngine, RoomHead, StoredEvent } from '../../rooms/index.ts';

/** How many events stay prepared for rules; each is as large as the event. */
const remembered = 256;

interface Levels {
  /** What they were made from. */
  readonly nids: readonly (number | undefined)[];
  readonly levels: PowerLevels;
}

/** New events prepared for push rules, once for all members who look at them. */
export class PushEvents {
  readonly #engine: RoomEngine;
  readonly #events = new LRUCache<number, PushEvent>({ max: remembered });
  readonly #levels = new WeakMap<RoomHead, Levels>();

  constructor(engine: RoomEngine) {
    this.#engine = engine;
  }

  /** The event with the facts about the room as they are now. */
  async get(head: RoomHead, stored: StoredEvent): Promise<PushEvent> {
    const known = this.#events.get(stored.nid);
    if (known) return known;
    const levels = await this.#levelsOf(head);
    const event = new PushEvent(stored.event, {
      memberCount: head.memberCount('join'),
      senderMayNotify: (key) => levels.canNotify(stored.event.sender, key),
    });
    this.#events.set(stored.nid, event);
    return event;
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
