import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { sql } from 'kysely';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { tableColumns } from '../../test/support/databases/table-columns.ts';
import { alice, bob, RoomsUnderTest } from '../../test/support/rooms/rooms.ts';
import { RoomPurge } from '../rooms/index.ts';
import { migrations } from '../slices.ts';
import { roomRows } from './rooms.ts';

/**
 * Tables with room ids that no manifest declares: reports stay for moderators, key backups belong to users, and the
 * purge itself deletes the rooms, their events and their state groups.
 */
const undeclaredTables = ['reports', 'room_keys', 'rooms', 'events', 'state_groups'];

/** Tables whose rows refer to events only. */
const tablesOfEvents = ['event_auth', 'redacted_events'];

forSelectedDatabases(import.meta.url, (open) => {
  describe('RoomPurge over all slices', () => {
    let fixture: RoomsUnderTest;
    before(async () => {
      fixture = await RoomsUnderTest.open(open, migrations.slice(0, 0));
    });
    after(() => fixture.engine.close());

    it('covers all tables with a column of room ids', async () => {
      const database = await open(migrations);
      const known = await tableColumns(database, open.kind);
      const withRoomIds = [...known]
        .filter(([, names]) => names.includes('room_id') || names.includes('room_nid'))
        .map(([table]) => table);
      const purge = new RoomPurge({
        database,
        streams: fixture.streams,
        engine: fixture.engine,
        rows: roomRows,
      });
      const covered = [
        ...purge.tables.map(({ table }) => table),
        ...undeclaredTables,
        'event_relations',
        // A deleted room stays blocked.
        'blocked_rooms',
      ];
      assert.deepEqual(withRoomIds.filter((name) => !covered.includes(name)).sort(), []);
      assert.ok(withRoomIds.length > 15, 'no tables found');
      for (const { table, column, key } of purge.tables) {
        const columns = known.get(table) ?? [];
        assert.ok(
          [column, ...key].every((name) => columns.includes(name)),
          table,
        );
      }
    });
  });

  describe('RoomPurge.purge()', () => {
    it('deletes all rows of a room and none of other rooms, also when the purge is interrupted and repeated', async (context) => {
      const otherMigrations = migrations.filter(({ name }) => !/^(streams|rooms)\//.test(name));
      const fixture = await RoomsUnderTest.open(open, otherMigrations);
      context.after(() => fixture.engine.close());
      const { database, streams, engine } = fixture;
      const purge = new RoomPurge({ database, streams, engine, rows: roomRows });
      const [room, kept] = [await fixture.room(alice, bob), await fixture.room(alice, bob)];
      for (const roomId of [room, kept]) {
        const root = await fixture.say(alice, roomId, 'root');
        await fixture.redact(alice, roomId, await fixture.say(alice, roomId, 'gone'));
        for (let index = 0; index < 220; index++) await fixture.reply(bob, roomId, root, `reply ${index}`);
      }
      const { roomNid } = (await engine.heads.get(room))!;
      const count = async (table: string, column: string, value: string | number) => {
        const { rows } = await sql<{ n: number }>`
          select count(*) as n from ${sql.table(table)} where ${sql.ref(column)} = ${value}`.execute(
          database.reader<never>(),
        );
        return Number(rows[0]?.n);
      };
      const total = async (table: string) => {
        const { rows } = await sql<{ n: number }>`select count(*) as n from ${sql.table(table)}`.execute(
          database.reader<never>(),
        );
        return Number(rows[0]?.n);
      };
      const totals = await Promise.all(tablesOfEvents.map(total));
      const never = new AbortController().signal;
      const interrupted = new AbortController();
      interrupted.abort();

      const where = { roomId: room, roomNid };
      assert.equal(await purge.purge(where, async () => false, never), false);
      assert.ok(await engine.heads.get(room));
      const interruption = purge.purge(where, async () => true, interrupted.signal);
      await assert.rejects(interruption, { name: 'AbortError' });
      assert.equal(await engine.heads.get(room), undefined);
      const mustNotBeCalled = async () => assert.fail('a purge that has started must not call this again');
      assert.equal(await purge.purge(where, mustNotBeCalled, never), true);

      for (const { table, column, holds } of purge.tables) {
        assert.equal(await count(table, column, holds === 'room id' ? room : roomNid), 0, table);
      }
      for (const table of ['rooms', 'events', 'state_groups']) {
        assert.equal(await count(table, 'room_nid', roomNid), 0, table);
      }
      const left = await Promise.all(tablesOfEvents.map(total));
      for (const [index, name] of tablesOfEvents.entries())
        assert.equal(left[index]! * 2, totals[index], name);
      assert.equal((await engine.userRooms.of(alice)).has(room), false);
      await assert.rejects(fixture.say(alice, room, 'hello?'), { errcode: 'M_FORBIDDEN' });
      await fixture.say(alice, kept, 'still here');
    });
  });
});
