import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Reader } from '../../kernel/database/index.ts';
import type { TimeSlices } from '../../kernel/time-slices.ts';
import type { RoomTables } from '../tables.ts';

/** Maximum number of events in one query. */
const maxIds = 500;

/** Maximum number of events whose auth edges are cached; the edges of an event take about 100 bytes. */
const maxCachedEvents = 200_000;

/** Reads the auth events of state events, by nid. An auth event has a lower nid than the events that refer to it. */
export class AuthEdges {
  readonly slices: TimeSlices;
  readonly #reader: Reader<RoomTables>;
  readonly #cached: Cache<number, readonly number[]>;
  /** Edges that are not on disk yet. */
  readonly #unsaved = new Map<number, readonly number[]>();

  /** @param slices yields to other work; callers that follow the edges use the same time slices */
  constructor(reader: Reader<RoomTables>, caches: CacheRegistry, slices: TimeSlices) {
    this.#reader = reader;
    this.#cached = caches.create('auth_edges', {
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
    if (auth && this.#unsaved.delete(nid)) this.#cached.set(nid, auth);
  }

  /** Returns the auth events of an event that are in memory, cached or not on disk yet; else `undefined`. */
  peek(nid: number): readonly number[] | undefined {
    return this.#cached.get(nid) ?? this.#unsaved.get(nid);
  }

  /** Reads the auth events of each of these events. */
  async of(nids: Iterable<number>): Promise<Map<number, readonly number[]>> {
    const edges = new Map<number, readonly number[]>();
    const missing: number[] = [];
    await this.slices.each(nids, (nid) => {
      const cached = this.peek(nid);
      if (cached) edges.set(nid, cached);
      else missing.push(nid);
    });
    for (let start = 0; start < missing.length; start += maxIds) {
      if (start > 0) await this.slices.pauseIfDue();
      const missingChunk = missing.slice(start, start + maxIds);
      const rows = await this.#reader
        .selectFrom('event_auth')
        .selectAll()
        .where('event_nid', 'in', missingChunk)
        .execute();
      const rowsByEvent = Map.groupBy(rows, ({ event_nid }) => event_nid);
      for (const nid of missingChunk) {
        const auth = (rowsByEvent.get(nid) ?? []).map(({ auth_nid }) => auth_nid);
        edges.set(nid, auth);
        this.#cached.set(nid, auth);
      }
    }
    return edges;
  }
}
