import { type Cache, type CacheRegistry, MiB } from '../kernel/caches/index.ts';
import type { Database, Reader } from '../kernel/database/index.ts';
import { serverOfUser } from '../protocol/index.ts';
import type { EventIndex, IndexBatch, RoomFact, RoomReader, StoredEvent } from '../room-engine/index.ts';
import { type Child, childOf, compareByHistory } from './child.ts';
import { RelationBatch, type RelationChange } from './relation-batch.ts';
import { readChildren } from './store.ts';
import type { RelationTables } from './tables.ts';

/** Maximum estimated bytes of the cached children of events, and estimated bytes of a child. */
const [maxBytes, childBytes] = [10 * MiB, 300];

const none: readonly Child[] = [];

/**
 * Indexes which events relate to which. The rows are written in the transaction of the events, so that
 * readers of an event find its relation, too. Results are cached and follow the stream of rooms; new local
 * events are known to have no children without a query.
 */
export class RelationIndex implements EventIndex {
  readonly #reader: Reader<RelationTables>;
  readonly #serverName: string;
  readonly #children: Cache<string, readonly Child[]>;
  /** Changes by events that are being written. */
  readonly #changes = new WeakMap<StoredEvent, RelationChange>();
  /** Counts changes: a result that was read before a change is not cached. */
  #generation = 0;

  constructor(database: Database, serverName: string, caches: CacheRegistry) {
    this.#children = caches.create('relations', {
      maxBytes,
      sizeOf: (children) => childBytes * children.length,
    });
    this.#reader = database.reader<RelationTables>();
    this.#serverName = serverName;
  }

  get reader(): Reader<RelationTables> {
    return this.#reader;
  }

  /** Follows the events of rooms; to be called once, before reading. */
  follow({ stream }: RoomReader): void {
    stream.subscribe((fact) => this.#apply(fact));
  }

  /** Like `follow`, in a process that does not write the rows: takes the changes from the facts. */
  followRemote({ stream, events }: RoomReader): void {
    stream.subscribe((fact) => {
      const { stored, redacts } = fact;
      const target = redacts === undefined ? undefined : events.peek(redacts);
      // The parent of an event that is not in memory is not known.
      if (redacts !== undefined && !target) this.#children.clear();
      const change = { added: childOf(stored), removed: target && childOf(target) };
      if (change.added || change.removed) this.#changes.set(stored, change);
      this.#apply(fact);
    });
  }

  /** Collects the rows of one transaction. */
  batch(): IndexBatch {
    return new RelationBatch((stored, change) => this.#changes.set(stored, change));
  }

  /** Returns the children of an event in the order of history, if they are cached. */
  peek(eventId: string): readonly Child[] | undefined {
    return this.#children.get(eventId);
  }

  /** Returns the children of events in the order of history; events without children are absent. */
  async children(eventIds: readonly string[]): Promise<Map<string, readonly Child[]>> {
    const found = new Map<string, readonly Child[]>();
    const missing: string[] = [];
    for (const eventId of new Set(eventIds)) {
      const known = this.#children.get(eventId);
      if (!known) missing.push(eventId);
      else if (known.length > 0) found.set(eventId, known);
    }
    if (missing.length === 0) return found;
    const generation = this.#generation;
    const read = Map.groupBy(await readChildren(this.#reader, missing), ({ parentId }) => parentId);
    for (const eventId of missing) {
      const children = read.get(eventId);
      if (children) found.set(eventId, children);
      if (generation === this.#generation) this.#children.set(eventId, children ?? none);
    }
    return found;
  }

  #apply({ stored }: RoomFact): void {
    const { eventId, sender } = stored.event;
    // No event can relate to a new local event before its id is known. Relations to remote events may arrive before
    // them, and so may those to local events that were purged and received again.
    const isNew = stored.stream === stored.nid && serverOfUser(sender) === this.#serverName;
    if (isNew && !this.#children.has(eventId)) {
      this.#children.set(eventId, none);
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
    const known = this.#children.get(parentId);
    if (known) this.#children.set(parentId, change(known));
  }
}

/** Inserts a child at its position, unless it is present. */
function insert(children: readonly Child[], child: Child): readonly Child[] {
  if (children.some(({ nid }) => nid === child.nid)) return children;
  const last = children.at(-1);
  const added = [...children, child];
  return last && compareByHistory(last, child) > 0 ? added.sort(compareByHistory) : added;
}
