import { sql } from 'kysely';
import type { Reader } from '../kernel/database/index.ts';
import type { HistoryPlace } from '../room-engine/index.ts';
import { aggregatedTypes, type Child, compareByHistory, storableKey } from './child.ts';
import type { RelationTables } from './tables.ts';

/** Maximum number of ids in one query. */
const maxIds = 500;

/** Maximum number of children that one query returns, and maximum number of children of one event that are read. */
const maxChildren = 1_500;

/** Maximum number of replies of a thread that are read. When a read returns this number, more replies may be stored. */
export const maxReadReplies = 500;

/** Maximum number of children that are read by relation type, for an event with more than `maxChildren` children. */
const maxChildrenByType: Readonly<Record<string, number>> = {
  'm.thread': maxReadReplies,
  'm.replace': 500,
  'm.reference': 500,
};

/** All columns except the key, which may be as long as an event. */
const columns = [
  'child_nid',
  'room_nid',
  'parent_id',
  'rel_type',
  'type',
  'sender',
  'ts',
  'depth',
  'stream',
] as const;

/**
 * Reads the children of events whose relation type is aggregated, in the order of history for each event. Of an event
 * with more than `maxChildren` children only the newest are returned.
 */
export const readAggregatedChildren = (reader: Reader<RelationTables>, parentIds: readonly string[]) =>
  readChildren(reader, parentIds, aggregatedTypes);

/**
 * Reads the children of events with any relation type, in the order of history for each event. Of an event with more
 * than `maxChildren` children only the newest are returned.
 */
export const readAllChildren = (reader: Reader<RelationTables>, parentIds: readonly string[]) =>
  readChildren(reader, parentIds, undefined);

async function readChildren(
  reader: Reader<RelationTables>,
  parentIds: readonly string[],
  relTypes: readonly string[] | undefined,
): Promise<Child[]> {
  if (parentIds.length === 0) return [];
  if (parentIds.length <= maxIds) {
    const rows = await childrenOf(reader, parentIds, relTypes)
      .orderBy('parent_id')
      .orderBy('depth')
      .orderBy('stream')
      .limit(maxChildren + 1)
      .execute();
    if (rows.length <= maxChildren) return rows.map(toChild);
    const [onlyId, ...otherIds] = parentIds;
    if (onlyId !== undefined && otherIds.length === 0) return readNewest(reader, onlyId, relTypes);
  }
  const middle = Math.ceil(parentIds.length / 2);
  const first = await readChildren(reader, parentIds.slice(0, middle), relTypes);
  return first.concat(await readChildren(reader, parentIds.slice(middle), relTypes));
}

/**
 * Reads the newest children of an event. Each relation type has its own query, so that many children of one type do not
 * displace children of another type.
 */
async function readNewest(
  reader: Reader<RelationTables>,
  parentId: string,
  relTypes: readonly string[] | undefined,
): Promise<Child[]> {
  const children: Child[] = [];
  for (const relTypeOrAll of relTypes?.map((relType) => [relType]) ?? [undefined]) {
    const rows = await childrenOf(reader, [parentId], relTypeOrAll)
      .orderBy('depth', 'desc')
      .orderBy('stream', 'desc')
      .limit(relTypeOrAll ? (maxChildrenByType[relTypeOrAll[0]!] ?? 0) : maxChildren)
      .execute();
    for (const row of rows) children.push(toChild(row));
  }
  return children.sort(compareByHistory);
}

function childrenOf(
  reader: Reader<RelationTables>,
  parentIds: readonly string[],
  relTypes: readonly string[] | undefined,
) {
  const query = reader.selectFrom('event_relations').select(columns).where('parent_id', 'in', parentIds);
  return relTypes ? query.where('rel_type', 'in', relTypes) : query;
}

/** An annotation of an event. */
export interface Annotation {
  readonly parentId: string;
  readonly sender: string;
  readonly type: string;
  readonly key: string;
}

/** Whether an annotation is stored. */
export async function isAnnotated(
  reader: Reader<RelationTables>,
  { parentId, sender, type, key }: Annotation,
): Promise<boolean> {
  const row = await reader
    .selectFrom('event_relations')
    .select('child_nid')
    .where('parent_id', '=', parentId)
    // A literal, so that the database can use the index, which holds annotations only.
    .where('rel_type', '=', sql.lit('m.annotation'))
    .where('sender', '=', sender)
    .where('type', '=', type)
    .where('key', '=', storableKey(key))
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Counts of the replies in a thread. */
export interface ReplyCounts {
  readonly total: number;
  /** The replies that the user has sent. */
  readonly ofUser: number;
}

/** Counts the replies in a thread without reading the events. Replies of ignored users do not count. */
export async function countReplies(
  reader: Reader<RelationTables>,
  { parentId, roomNid }: { readonly parentId: string; readonly roomNid: number },
  userId: string,
  ignored: ReadonlySet<string>,
): Promise<ReplyCounts> {
  // Grouped by sender and filtered here, because a user may ignore more users than a statement has parameters.
  const rows = await replyCountsQuery(reader, parentId, roomNid).execute();
  const counted = rows.filter(({ sender }) => !ignored.has(sender));
  const sum = (selectedRows: typeof rows) =>
    selectedRows.reduce((total, { count }) => total + Number(count), 0);
  return { total: sum(counted), ofUser: sum(counted.filter(({ sender }) => sender === userId)) };
}

/** Counts the replies in a thread by sender. */
export const replyCountsQuery = (reader: Reader<RelationTables>, parentId: string, roomNid: number) =>
  reader
    .selectFrom('event_relations')
    .select(['sender', sql<number | string>`count(*)`.as('count')])
    .where('parent_id', '=', parentId)
    .where('room_nid', '=', roomNid)
    // A literal, so that the database can use the index, which holds replies only.
    .where('rel_type', '=', sql.lit('m.thread'))
    .groupBy('sender');

/** A page of the children of some events. */
export interface ChildrenRange {
  readonly roomNid: number;
  readonly parentIds: readonly string[];
  readonly relType: string | undefined;
  readonly type: string | undefined;
  readonly direction: 'forward' | 'backward';
  /** The place in history after the last event of the previous page. */
  readonly from: HistoryPlace | undefined;
  /** Bounds of the stream positions: above `after`, up to `upTo`. */
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
    .select(columns)
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

/** Reads the nids of the newest children of events. */
export async function readChildNids(
  reader: Reader<RelationTables>,
  { roomNid, parentIds, limit }: Pick<ChildrenRange, 'roomNid' | 'parentIds' | 'limit'>,
): Promise<number[]> {
  const anyType = { relType: undefined, type: undefined };
  const range = { roomNid, parentIds, ...anyType, limit, from: undefined, direction: 'backward' } as const;
  return (await readChildrenPage(reader, range)).map(({ nid }) => nid);
}

/** A thread of a room. */
export interface ThreadRow {
  readonly rootId: string;
  /** Stream position of its latest reply. */
  readonly latest: number;
}

/**
 * Reads threads with replies, latest first.
 * @param before only threads whose latest reply is before this stream position
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

const toChild = (row: Pick<RelationTables['event_relations'], (typeof columns)[number]>): Child => ({
  nid: row.child_nid,
  roomNid: row.room_nid,
  parentId: row.parent_id,
  relType: row.rel_type,
  type: row.type,
  sender: row.sender,
  ts: row.ts,
  depth: row.depth,
  stream: row.stream,
});
