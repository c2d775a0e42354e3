import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sql } from 'kysely';
import { manualClock } from '../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { plainCaches } from '../../test/support/servers/caches.ts';
import type { Database } from '../kernel/database/index.ts';
import type { RoomFact, RoomReader, StoredEvent } from '../room-engine/index.ts';
import { relationMigrations } from './migrations.ts';
import { RelationBatch } from './relation-batch.ts';
import { RelationIndex } from './relation-index.ts';
import { isAnnotated, replyCountsQuery } from './store.ts';
import type { RelationTables } from './tables.ts';

const root = '$root';

interface Relation {
  readonly parent?: string;
  readonly relType?: string;
  readonly key?: string;
  readonly redactedBy?: number;
}

/** An event of another server at the position `nid`. */
function event(
  nid: number,
  { parent = root, relType = 'm.thread', key, redactedBy }: Relation = {},
): StoredEvent {
  const relation = { rel_type: relType, event_id: parent, ...(key === undefined ? undefined : { key }) };
  return {
    nid,
    roomNid: 1,
    stream: nid,
    redactedBy,
    event: {
      eventId: `$event${nid}`,
      type: 'm.room.message',
      sender: '@alice:far',
      originServerTs: nid,
      depth: nid,
      content: relType === '' ? {} : { 'm.relates_to': relation },
    },
  } as unknown as StoredEvent;
}

const events = (from: number, count: number, relates?: Relation) =>
  Array.from({ length: count }, (_, index) => event(from + index, relates));

/** Inserts a row for a reply in the thread of `root` for each nid between two bounds. */
const insertReplies = `insert into event_relations (child_nid, room_nid, parent_id, rel_type, type, sender, ts, depth, stream)
  with recursive numbers(nid) as (
    select cast(? as bigint) union all select nid + 1 from numbers where nid < cast(? as bigint)
  )
  select nid, 1, '${root}', 'm.thread', 'm.room.message', '@alice:far', nid, nid, nid from numbers`;

/** Stores the relations of events, and deletes the relation of the event `redacts`. */
async function store(database: Database, added: readonly StoredEvent[], redacts?: StoredEvent) {
  const batch = new RelationBatch(() => undefined);
  for (const stored of added) batch.add(stored, redacts);
  await database.batch(batch.statements());
}

/** The relation index of a reader process; `publish` delivers a fact to it. */
function indexOfReader(database: Database, inMemory: readonly StoredEvent[] = []) {
  const caches = plainCaches(manualClock());
  const index = new RelationIndex(database, 'here', caches);
  let apply: (fact: RoomFact) => void = () => undefined;
  index.followAsReader({
    stream: { subscribe: (listener: typeof apply) => (apply = listener) },
    events: { peek: (nid: number) => inMemory.find((stored) => stored.nid === nid) },
  } as unknown as RoomReader);
  const publish = (stored: StoredEvent, redacts?: number) => apply({ stored, redacts } as RoomFact);
  const nids = async (parent = root) => (await index.children([parent])).get(parent)?.map(({ nid }) => nid);
  return { index, caches, publish, nids };
}

const redaction = (nid: number) => event(nid, { relType: '' });

forSelectedDatabases(import.meta.url, (open) => {
  describe('RelationIndex, which caches the children of events', () => {
    it('reads and caches the 500 newest children of each relation type, of an event with more than 1,500 children', async () => {
      const database = await open(relationMigrations);
      await store(database, [
        ...events(1, 1, { relType: 'm.replace' }),
        ...events(7_000, 3, { parent: '$other' }),
      ]);
      await database.batch([{ sql: insertReplies, rows: [[2, 6_101]] }]);
      const { index, caches, nids } = indexOfReader(database);
      const children = await index.children([root, '$other']);
      const read = children.get(root)?.map(({ nid }) => nid) ?? [];
      assert.equal(read.length, 501);
      assert.deepEqual([read[0], read[1], read.at(-1)], [1, 5_602, 6_101]);
      assert.deepEqual(
        children.get('$other')?.map(({ nid }) => nid),
        [7_000, 7_001, 7_002],
      );
      const { reads } = database.statistics;
      await nids();
      assert.equal(database.statistics.reads, reads);
      caches.close();
    });

    it('counts the replies of a thread with an index that has all columns of the count', async () => {
      const database = await open(relationMigrations);
      await database.batch([
        { sql: insertReplies, rows: [[1, 200]] },
        { sql: insertReplies.replace(root, '$other'), rows: [[201, 6_200]] },
      ]);
      await database.transaction<RelationTables, unknown>((writer) => sql`analyze`.execute(writer));
      const reader = database.reader<RelationTables>();
      const { sql: text, ...rest } = replyCountsQuery(reader, root, 1).compile();
      const explain = open.kind === 'sqlite' ? 'explain query plan ' : 'explain ';
      const { rows } = await reader.executeQuery({ ...rest, sql: explain + text });
      const plan = JSON.stringify(rows);
      assert.match(
        plan,
        open.kind === 'sqlite' ? /COVERING INDEX event_relations_replies/ : /event_relations_replies/,
      );
    });

    it('reads and caches neither annotations nor the keys of children', async () => {
      const database = await open(relationMigrations);
      const key = 'k'.repeat(60_000);
      await store(database, [...events(1, 5, { relType: 'm.annotation', key }), event(6, { key })]);
      const { index, caches, publish, nids } = indexOfReader(database);
      assert.deepEqual(await nids(), [6]);
      publish(event(7, { relType: 'm.annotation', key }));
      publish(event(8, { key }));
      assert.deepEqual(await nids(), [6, 8]);
      assert.ok(JSON.stringify(index.peek(root)).length < 1_000);
      const annotation = { parentId: root, sender: '@alice:far', type: 'm.room.message', key };
      assert.equal(await isAnnotated(index.reader, annotation), true);
      assert.equal(await isAnnotated(index.reader, { ...annotation, key: 'other' }), false);
      caches.close();
    });

    it('does not cache a child that was read before its redaction, in a reader process', async () => {
      const database = await open(relationMigrations);
      const child = event(1);
      await store(database, [child]);
      const { caches, publish, nids } = indexOfReader(database);
      const reading = nids();
      publish(redaction(2), child.nid);
      await reading;
      await store(database, [redaction(2)], child);
      assert.equal(await nids(), undefined);
      caches.close();
    });

    it('does not add a child whose redaction arrived before it, in a reader process', async () => {
      const database = await open(relationMigrations);
      await store(database, [event(1)]);
      const { caches, publish, nids } = indexOfReader(database);
      assert.deepEqual(await nids(), [1]);
      publish(event(2, { redactedBy: 3 }));
      assert.deepEqual(await nids(), [1]);
      caches.close();
    });

    it('drops only the cached children of the parent when a child that is not in memory is redacted, in a reader process', async () => {
      const database = await open(relationMigrations);
      const child = event(1);
      await store(database, [child, event(2, { parent: '$other' })]);
      const { caches, publish, nids, index } = indexOfReader(database);
      await index.children([root, '$other']);
      await store(database, [redaction(3)], child);
      publish(redaction(3), child.nid);
      assert.equal(index.peek(root), undefined);
      assert.equal(index.peek('$other')?.length, 1);
      assert.equal(await nids(), undefined);
      caches.close();
    });
  });
});
