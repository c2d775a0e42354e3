import { type Cache, type CacheRegistry, MiB } from '../../../kernel/caches/index.ts';
import type { RoomHead, RoomReader, StoredEvent } from '../../../room-engine/index.ts';

/** Event types that move a room up in lists. Source: MSC4186, `bump_stamp`. */
const bumpTypes: ReadonlySet<string> = new Set([
  'm.room.create',
  'm.room.message',
  'm.room.encrypted',
  'm.sticker',
  'm.call.invite',
  'm.poll.start',
  'org.matrix.msc3381.poll.start',
  'm.beacon_info',
  'org.matrix.msc3672.beacon_info',
]);

/** Maximum number of rooms in each cache. */
const maxRooms = 30_000;

/** Maximum bytes of each cache. */
const maxBytes = 4 * MiB;

/** Number of events in a page. */
const pageSize = 50;

/**
 * Maximum number of pages that are searched for an event of `bumpTypes`; if there is none, the oldest searched
 * event counts.
 */
const maxPages = 10;

/** Stream positions of the latest activity in rooms. */
export class RoomActivity {
  readonly #engine: RoomReader;
  /** Position of the newest event of each room, by room nid. */
  readonly #latest: Cache<number, number>;
  /** Position of the newest event of `bumpTypes` in each room, by room nid. */
  readonly #bumps: Cache<number, number>;

  constructor(engine: RoomReader, caches: CacheRegistry) {
    this.#latest = caches.create('newest_positions_of_rooms', { size: maxRooms, maxBytes });
    this.#bumps = caches.create('bump_stamps_of_rooms', { size: maxRooms, maxBytes });
    this.#engine = engine;
    engine.stream.subscribe(({ stored, onTimeline }, position) => {
      if (!onTimeline) return;
      this.#latest.set(stored.roomNid, position);
      if (isBump(stored)) this.#bumps.set(stored.roomNid, position);
    });
  }

  /** Returns the position of the newest event of each room, by room nid. */
  async latest(rooms: readonly { readonly roomNid: number }[]): Promise<Map<number, number>> {
    const positions = new Map<number, number>();
    const missing: number[] = [];
    for (const { roomNid } of rooms) {
      const position = this.#latest.get(roomNid);
      if (position === undefined) missing.push(roomNid);
      else positions.set(roomNid, position);
    }
    if (missing.length === 0) return positions;
    for (const [roomNid, position] of await this.#engine.events.newestPositions(missing)) {
      const latest = Math.max(position, this.#latest.peek(roomNid) ?? 0);
      this.#latest.set(roomNid, latest);
      positions.set(roomNid, latest);
    }
    return positions;
  }

  /** Returns the position of the newest event that moves the room up in lists (`bump_stamp`). */
  async bumpStamp({ roomNid }: RoomHead): Promise<number> {
    const cached = this.#bumps.get(roomNid);
    if (cached !== undefined) return cached;
    const position = await this.#lookBack(roomNid);
    const stamp = Math.max(position, this.#bumps.peek(roomNid) ?? 0);
    this.#bumps.set(roomNid, stamp);
    return stamp;
  }

  async #lookBack(roomNid: number): Promise<number> {
    let before = Number.MAX_SAFE_INTEGER;
    for (let page = 0; page < maxPages; page++) {
      const range = { before, limit: pageSize, direction: 'backward' } as const;
      const events = await this.#engine.events.timeline(roomNid, range);
      const stream = events.find(isBump)?.stream;
      if (stream !== undefined) return Math.max(0, stream);
      before = events.at(-1)?.stream ?? 0;
      if (events.length < pageSize) break;
    }
    return Math.max(0, before);
  }
}

const isBump = ({ event, rejected, softFailed }: StoredEvent) =>
  bumpTypes.has(event.type) && !rejected && !softFailed;
