import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sql } from 'kysely';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import type { RoomTables } from '../tables.ts';
import { type HistoryRange, historyQuery, timelineQuery } from './event-queries.ts';
import type { HistoryPlace } from './stream-places.ts';

/** Number of events: so many that the planner of PostgreSQL does not prefer reading the whole table. */
const eventCount = 3_000;

forSelectedDatabases(import.meta.url, (open) => {
  /** Opens a database with a long room. @returns a function that returns the plan of the query for a history page */
  const openPlans = async () => {
    const { database } = await RoomsUnderTest.open(open);
    const columns = ['nid', 'room_nid', 'event_id', 'stream', 'depth', 'flags', 'json'] as const;
    await database.batch([
      {
        sql: "insert into rooms (room_nid, room_id, version, extremities, created_ts) values (?, ?, '11', '[]', 0)",
        rows: [[1, '!a']],
      },
      {
        sql: `insert into events (${columns.join(', ')}) values (?, 1, ?, ?, ?, 0, '{}')`,
        rows: Array.from({ length: eventCount }, (_, index) => [
          index + 1,
          `$${index}`,
          index + 1,
          index + 1,
        ]),
      },
    ]);
    const reader = database.reader<RoomTables>();
    await database.transaction<RoomTables, unknown>((writer) => sql`analyze`.execute(writer));
    const explain = open.kind === 'sqlite' ? 'explain query plan ' : 'explain ';
    return async (from: HistoryPlace | undefined, range: HistoryRange): Promise<string> => {
      const query = historyQuery(reader, 1, from, range).compile();
      const plan = await reader.executeQuery({ ...query, sql: explain + query.sql });
      return JSON.stringify(plan.rows);
    };
  };

  describe('the query for a page of the history (historyQuery)', () => {
    it('reads a page in the order of an index, without reading the whole room and sorting it', async () => {
      const planOf = await openPlans();
      const place = { depth: 2_000, stream: 2_000 };
      const page = { limit: 11, upTo: eventCount } as const;
      for (const plan of [
        await planOf(undefined, { ...page, after: 0, direction: 'backward' }),
        await planOf(undefined, { ...page, direction: 'forward' }),
        await planOf(place, { ...page, after: 0, direction: 'backward' }),
        await planOf(place, { ...page, direction: 'forward' }),
      ]) {
        assert.match(plan, /events_by_depth/);
        assert.doesNotMatch(plan, /temp b-tree|\bsort\b/i);
      }
    });
  });

  describe('the query for a page of the timeline (timelineQuery)', () => {
    it('has one lower bound on the stream, which is never below 0', async () => {
      const { database } = await RoomsUnderTest.open(open);
      const boundOf = (after: number | undefined) => {
        const range = {
          ...(after !== undefined && { after }),
          upTo: 9,
          limit: 5,
          direction: 'backward',
        } as const;
        const { sql, parameters } = timelineQuery(database.reader<RoomTables>(), 1, range).compile();
        assert.equal(sql.match(/"stream" >/g)?.length, 1, sql);
        return parameters[1];
      };
      assert.deepEqual([undefined, -3, 0, 7].map(boundOf), [0, 0, 0, 7]);
    });
  });
});
