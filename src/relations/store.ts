import type { Reader } from '../kernel/database/index.ts';
import type { HistoryPlace } from '../room-engine/index.ts';
import type { Child } from './child.ts';
import type { RelationTables } from './tables.ts';

/** Maximum number of ids in one query. */
const chunk = 500;

/** Reads the children of events, oldest first. */
export async function readChildren(
  reader: Reader<RelationTables>,
  parentIds: readonly string[],
): Promise<Child[]> {
  const children: Child[] = [];
  for (let start = 0; start < parentIds.length; start += chunk) {
    const rows = await reader
      .selectFrom('event_relations')
      .selectAll()
      .where('parent_id', 'in', parentIds.slice(start, start + chunk))
      .orderBy('depth')
      .orderBy('stream')
      .execute();
    children.push(...rows.map(toChild));
  }
  return children;
}

/** Selects the children of a page. */
export interface ChildrenRange {
  readonly roomNid: number;
  readonly parentIds: readonly string[];
  readonly relType: string | undefined;
  readonly type: string | undefined;
  readonly direction: 'forward' | 'backward';
  /** The position after the last event of the previous page. */
  readonly from: HistoryPlace | undefined;
  /** Bounds on the stream, the first one exclusive. */
  readonly after?: number | undefined;
  readonly upTo?: number | undefined;
  readonly limit: number;
}

/** Reads a page of the children of events. */
export async function readChildrenPage(
  reader: Reader<RelationTables>,
  { roomNid, parentIds, relType, type, direction, from, after, upTo, limit }: ChildrenRange,
): Promise<Child[]> {
  const order = direction === 'backward' ? 'desc' : 'asc';
  let query = reader
    .selectFrom('event_relations')
    .selectAll()
    .where('parent_id', 'in', parentIds)
    .where('room_nid', '=', roomNid)
    .orderBy('depth', order)
    .orderBy('stream', order)
    .limit(limit);
  if (relType !== undefined) query = query.where('rel_type', '=', relType);
  if (type !== undefined) query = query.where('type', '=', type);
  if (after !== undefined) query = query.where('stream', '>', after);
  if (upTo !== undefined) query = query.where('stream', '<=', upTo);
  if (from) {
    query = query.where(({ eb, refTuple, tuple }) =>
      eb(refTuple('depth', 'stream'), direction === 'backward' ? '<=' : '>', tuple(from.depth, from.stream)),
    );
  }
  return (await query.execute()).map(toChild);
}

/** Reads the nids of the selected children of events. */
export async function readChildNids(
  reader: Reader<RelationTables>,
  {
    roomNid,
    parentIds,
    relType,
    type,
    limit,
  }: Pick<ChildrenRange, 'roomNid' | 'parentIds' | 'relType' | 'type' | 'limit'>,
): Promise<number[]> {
  const range = { roomNid, parentIds, relType, type, limit, from: undefined, direction: 'backward' } as const;
  return (await readChildrenPage(reader, range)).map(({ nid }) => nid);
}

/** A thread of a room. */
export interface ThreadRow {
  readonly rootId: string;
  /** Stream position of its latest reply. */
  readonly latest: number;
}

/**
 * Reads threads with replies, latest first. @param before only threads whose latest reply is before this
 * stream position
 */
export async function readThreads(
  reader: Reader<RelationTables>,
  roomNid: number,
  before: number | undefined,
  limit: number,
): Promise<ThreadRow[]> {
  let query = reader
    .selectFrom('threads')
    .select(['root_id', 'latest_stream'])
    .where('room_nid', '=', roomNid)
    .where('latest_stream', 'is not', null)
    .orderBy('latest_stream', 'desc')
    .limit(limit);
  if (before !== undefined) query = query.where('latest_stream', '<', before);
  const rows = await query.execute();
  return rows.map((row) => ({ rootId: row.root_id, latest: row.latest_stream ?? 0 }));
}

const toChild = (row: RelationTables['event_relations']): Child => ({
  nid: row.child_nid,
  roomNid: row.room_nid,
  parentId: row.parent_id,
  relType: row.rel_type,
  type: row.type,
  sender: row.sender,
  key: row.key ?? undefined,
  ts: row.ts,
  depth: row.depth,
  stream: row.stream,
});
