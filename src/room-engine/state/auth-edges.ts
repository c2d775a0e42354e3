import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Reader } from '../../kernel/database/index.ts';
import type { TimeSlices } from '../../kernel/time-slices.ts';
import type { RoomTables } from '../tables.ts';

/** Maximum number of events in one query. */
const chunk = 500;

/** Bounds the events whose edges are cached; those of one event are about 100 bytes. */
const maxCachedEvents = 200_000;

/**
 * Reads the auth events of state events, by nid. An auth event has a lower nid than the events that name it.
 */
export class AuthEdges {
  readonly slices: TimeSlices;
  readonly #reader: Reader<RoomTables>;
  readonly #known: Cache<number, readonly number[]>;
  /** Edges that are not on disk yet. */
  readonly #unsaved = new Map<number, readonly number[]>();

  /** @param slices also for callers that walk along the edges */
  constructor(reader: Reader<RoomTables>, caches: CacheRegistry, slices: TimeSlices) {
    this.#reader = reader;
    this.#known = caches.create('auth_edges', {
      size: maxCachedEvents,
      maxBytes: 8 * MiB,
      sizeOf: (auth) => 40 + 8 * auth.length,
    });
    this.slices = slices;
  }

  /** Adds the edges of a state event that is about to be written; they stay in memory until `settled`. */
  add(nid: number, auth: readonly number[]): void {
    this.#unsaved.set(nid, auth);
  }

  /** Marks the edges of an event as written, or as never to be written. */
  settled(nid: number): void {
    const auth = this.#unsaved.get(nid);
    if (auth && this.#unsaved.delete(nid)) this.#known.set(nid, auth);
  }

  /** Returns the cached auth events of an event; else `undefined`. */
  peek(nid: number): readonly number[] | undefined {
    return this.#known.get(nid) ?? this.#unsaved.get(nid);
  }

  /** Reads the auth events of each of these events. */
  async of(nids: Iterable<number>): Promise<Map<number, readonly number[]>> {
    const edges = new Map<number, readonly number[]>();
    const missing: number[] = [];
    await this.slices.each(nids, (nid) => {
      const known = this.peek(nid);
      if (known) edges.set(nid, known);
      else missing.push(nid);
    });
    for (let start = 0; start < missing.length; start += chunk) {
      if (start > 0) await this.slices.pauseIfDue();
      const wanted = missing.slice(start, start + chunk);
      const rows = await this.#reader
        .selectFrom('event_auth')
        .selectAll()
        .where('event_nid', 'in', wanted)
        .execute();
      const read = Map.groupBy(rows, ({ event_nid }) => event_nid);
      for (const nid of wanted) {
        const auth = (read.get(nid) ?? []).map(({ auth_nid }) => auth_nid);
        edges.set(nid, auth);
        this.#known.set(nid, auth);
      }
    }
    return edges;
  }
}
