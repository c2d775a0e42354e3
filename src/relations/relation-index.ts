import { type Cache, type CacheRegistry, MiB } from '../kernel/caches/index.ts';
import type { Database, Reader } from '../kernel/database/index.ts';
import { LoadTogether } from '../kernel/load-together.ts';
import { serverOfUser } from '../protocol/index.ts';
import type { EventIndex, IndexBatch, RoomFact, RoomReader, StoredEvent } from '../room-engine/index.ts';
import { type Child, childOf, compareByHistory, isAggregated } from './child.ts';
import { RelationBatch, type RelationChange } from './relation-batch.ts';
import { readAggregatedChildren } from './store.ts';
import type { RelationTables } from './tables.ts';

/** Maximum estimated size of the cached children of events, in bytes. */
const maxBytes = 10 * MiB;
/** Estimated size of a cached child besides its strings, in bytes. */
const childBytes = 200;

/**
 * Maximum number of events in a call of `children` that shares a query with simultaneous calls, for instance for
 * other rooms.
 */
const maxReadTogether = 100;

const noChildren: readonly Child[] = [];

/**
 * Indexes the relations between events. A row is written in the transaction of its event, so that a reader who finds
 * the event finds its relation, too. Results are cached, and the facts of the room stream update them. A new local
 * event has no children, so an empty result is cached for it without a query. Only children with aggregations are
 * cached, so that reactions, which are the most numerous, take no memory.
 */
export class RelationIndex implements EventIndex {
  readonly #reader: Reader<RelationTables>;
  readonly #serverName: string;
  readonly #children: Cache<string, readonly Child[]>;
  readonly #sharedReads = new LoadTogether<string, readonly Child[]>((eventIds) => this.#read(eventIds));
  /** Changes of cached children, by the event that causes the change, until its fact is delivered. */
  readonly #changes = new WeakMap<StoredEvent, RelationChange>();
  /** Counts changes: a result that was read before a change is not cached. */
  #generation = 0;

  constructor(database: Database, serverName: string, caches: CacheRegistry) {
    this.#children = caches.create('relations', {
      maxBytes,
      sizeOf: (children) => children.reduce((bytes, child) => bytes + sizeOf(child), 0),
    });
    this.#reader = database.reader<RelationTables>();
    this.#serverName = serverName;
  }

  /** The reader of the tables of relations. */
  get reader(): Reader<RelationTables> {
    return this.#reader;
  }

  /** Follows the events of rooms. Must be called once, before reading. */
  follow({ stream }: RoomReader): void {
    stream.subscribe((fact) => this.#apply(fact));
  }

  /** Like `follow`, in a reader process, which does not write the rows: takes the changes from the facts. */
  followAsReader({ stream, events }: RoomReader): void {
    stream.subscribe((fact) => {
      const { stored, redacts } = fact;
      const target = redacts === undefined ? undefined : events.peek(redacts);
      if (redacts !== undefined && !target) this.#forget(redacts);
      // The writer stores no row for an event whose redaction arrived first.
      const added = stored.redactedBy === undefined ? childOf(stored) : undefined;
      this.#note(stored, { added, removed: target && childOf(target) });
      this.#apply(fact);
    });
  }

  /** Returns the batch that collects the rows of one transaction. */
  batch(): IndexBatch {
    return new RelationBatch((stored, change) => this.#note(stored, change));
  }

  /**
   * Returns the cached children of an event whose relation types have aggregations, in the order of history;
   * `undefined` when they are not cached.
   */
  peek(eventId: string): readonly Child[] | undefined {
    return this.#children.get(eventId);
  }

  /**
   * Returns the children of events, in the order of history, as far as their relation types have aggregations; events
   * without such children are absent. Of an event with very many children only the newest are returned
   * (see `readAggregatedChildren`).
   */
  async children(eventIds: readonly string[]): Promise<Map<string, readonly Child[]>> {
    const childrenByParent = new Map<string, readonly Child[]>();
    const missing: string[] = [];
    for (const eventId of new Set(eventIds)) {
      const cached = this.#children.get(eventId);
      if (!cached) missing.push(eventId);
      else if (cached.length > 0) childrenByParent.set(eventId, cached);
    }
    if (missing.length === 0) return childrenByParent;
    const generation = this.#generation;
    const mayReadTogether = missing.length <= maxReadTogether;
    const read = await (mayReadTogether ? this.#sharedReads.getMany(missing) : this.#read(missing));
    for (const eventId of missing) {
      const children = read.get(eventId);
      if (children) childrenByParent.set(eventId, children);
      if (generation === this.#generation) this.#children.set(eventId, children ?? noChildren);
    }
    return childrenByParent;
  }

  async #read(eventIds: readonly string[]): Promise<ReadonlyMap<string, readonly Child[]>> {
    return Map.groupBy(await readAggregatedChildren(this.#reader, eventIds), ({ parentId }) => parentId);
  }

  /** Remembers the change of cached children that an event makes, until its fact is delivered. */
  #note(stored: StoredEvent, { added, removed }: RelationChange): void {
    const change = {
      added: added && isAggregated(added) ? added : undefined,
      removed: removed && isAggregated(removed) ? removed : undefined,
    };
    if (change.added || change.removed) this.#changes.set(stored, change);
  }

  /**
   * Drops the cached entry that contains a redacted child; searches all entries, because the parent of the child is not
   * known.
   */
  #forget(childNid: number): void {
    this.#generation += 1;
    this.#children.deleteWhere((children) => children.some(({ nid }) => nid === childNid));
  }

  #apply({ stored }: RoomFact): void {
    const { eventId, sender } = stored.event;
    // No event can relate to a new local event, because its id was not known before. Children of a remote event may
    // arrive before their parent, and so may children of a local event that was purged and received again.
    const isNew = stored.stream === stored.nid && serverOfUser(sender) === this.#serverName;
    if (isNew && !this.#children.has(eventId)) {
      this.#children.set(eventId, noChildren);
    }
    const change = this.#changes.get(stored);
    if (!change) return;
    this.#changes.delete(stored);
    this.#generation += 1;
    const { added, removed } = change;
    if (added) this.#replace(added.parentId, (children) => insert(children, added));
    if (removed) {
      this.#replace(removed.parentId, (children) => children.filter(({ nid }) => nid !== removed.nid));
    }
  }

  #replace(parentId: string, change: (children: readonly Child[]) => readonly Child[]): void {
    const cached = this.#children.get(parentId);
    if (cached) this.#children.set(parentId, change(cached));
  }
}

/** Estimates the bytes of a child. */
const sizeOf = ({ parentId, relType, type, sender }: Child): number =>
  childBytes + parentId.length + relType.length + type.length + sender.length;

/** Inserts a child at its position, unless it is present. */
function insert(children: readonly Child[], child: Child): readonly Child[] {
  if (children.some(({ nid }) => nid === child.nid)) return children;
  const last = children.at(-1);
  const added = [...children, child];
  return last && compareByHistory(last, child) > 0 ? added.sort(compareByHistory) : added;
}
