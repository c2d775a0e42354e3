import type { SqlValue, Statement } from '../kernel/database/index.ts';
import { relationOf } from '../protocol/index.ts';
import type { IndexBatch, StoredEvent } from '../room-engine/index.ts';
import { type Child, childOf, storableKey } from './child.ts';

/** The statement for each kind of row, in the order of execution: a batch may remove a row that it has added. */
const sqlText = {
  relation:
    'insert into event_relations (child_nid, room_nid, parent_id, rel_type, type, sender, key, ts, depth, stream) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  reply:
    'insert into threads (room_nid, root_id, latest_stream) values (?, ?, ?) on conflict (root_id, room_nid) do update set latest_stream = case when threads.latest_stream > excluded.latest_stream then threads.latest_stream else excluded.latest_stream end',
  removal: 'delete from event_relations where child_nid = ?',
  removedReply:
    "update threads set latest_stream = (select max(stream) from event_relations where parent_id = threads.root_id and room_nid = threads.room_nid and rel_type = 'm.thread') where root_id = ? and room_nid = ?",
};

type Kind = keyof typeof sqlText;

/** Effect of an event on relations: it adds a child, or as a redaction it removes a child. */
export interface RelationChange {
  readonly added: Child | undefined;
  readonly removed: Child | undefined;
}

/** Collects the relation rows of events that are written together. */
export class RelationBatch implements IndexBatch {
  readonly #rows: Record<Kind, SqlValue[][]> = { relation: [], reply: [], removal: [], removedReply: [] };
  readonly #onChange: (stored: StoredEvent, change: RelationChange) => void;

  /** @param onChange receives each change before the change is written */
  constructor(onChange: (stored: StoredEvent, change: RelationChange) => void) {
    this.#onChange = onChange;
  }

  add(stored: StoredEvent, redacts: StoredEvent | undefined): void {
    const added = stored.redactedBy === undefined ? childOf(stored) : undefined;
    const removed = redacts && childOf(redacts);
    if (!added && !removed) return;
    if (added) this.#add(added, relationOf(stored.event.content)?.key);
    if (removed) this.#remove(removed);
    this.#onChange(stored, { added, removed });
  }

  statements(): Statement[] {
    return Object.entries(this.#rows)
      .filter(([, rows]) => rows.length > 0)
      .map(([kind, rows]) => ({ sql: sqlText[kind as Kind], rows }));
  }

  #add(child: Child, key: string | undefined): void {
    const { nid, roomNid, parentId, relType, type, sender, ts, depth, stream } = child;
    const storedKey = key === undefined ? null : storableKey(key);
    const row = [nid, roomNid, parentId, relType, type, sender, storedKey, ts, depth, stream];
    this.#rows.relation.push(row);
    if (relType === 'm.thread') this.#rows.reply.push([roomNid, parentId, stream]);
  }

  #remove({ nid, roomNid, parentId, relType }: Child): void {
    this.#rows.removal.push([nid]);
    if (relType === 'm.thread') this.#rows.removedReply.push([parentId, roomNid]);
  }
}
