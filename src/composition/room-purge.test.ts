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
 * Tables with room ids that no manifest declares: reports stay for moderators, key backups belong to users, and
 * the purge itself deletes the rows of the others.
 */
const others = ['reports', 'room_keys', 'rooms', 'events', 'state_groups'];

/** Tables whose rows refer to events only. */
const ofEvents = ['event_auth', 'redacted_events'];

forSelectedDatabases(import.meta.url, (open) => {
  describe('RoomPurge over all slices', () => {
    let play: RoomsUnderTest;
    let purge: RoomPurge;
    before(async () => {
      play = await RoomsUnderTest.open(open, migrations.slice(0, 0));
    });
    after(() => play.engine.close());

    it('covers all tables with a column of room ids', async () => {
      const database = await open(migrations);
      const known = await tableColumns(database, open.kind);
      const naming = [...known]
        .filter(([, names]) => names.includes('room_id') || names.includes('room_nid'))
        .map(([table]) => table);
      purge = new RoomPurge({ database, streams: play.streams, engine: play.engine, rows: roomRows });
      const covered = [
        ...purge.tables.map(({ table }) => table),
        ...others,
        'event_times',
        'event_relations',
        // A deleted room stays blocked.
        'blocked_rooms',
      ];
      assert.deepEqual(naming.filter((name) => !covered.includes(name)).sort(), []);
      assert.ok(naming.length > 15, 'no tables found');
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
    it('deletes all rows of a room, and none of other rooms', async (context) => {
      const all = migrations.filter(({ name }) => !/^(streams|rooms)\//.test(name));
      const play = await RoomsUnderTest.open(open, all);
      context.after(() => play.engine.close());
      const { database, streams, engine } = play;
      const purge = new RoomPurge({ database, streams, engine, rows: roomRows });
      const [room, kept] = [await play.room(alice, bob), await play.room(alice, bob)];
      for (const roomId of [room, kept]) {
        const root = await play.say(alice, roomId, 'root');
        await play.redact(alice, roomId, await play.say(alice, roomId, 'gone'));
        for (let index = 0; index < 220; index++) await play.reply(bob, roomId, root, `reply ${index}`);
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
      const totals = await Promise.all(ofEvents.map(total));
      const never = new AbortController().signal;
      const interrupted = new AbortController();
      interrupted.abort();

      const where = { roomId: room, roomNid };
      assert.equal(await purge.purge(where, async () => false, never), false);
      assert.ok(await engine.heads.get(room));
      assert.equal(await purge.purge(where, async () => true, interrupted.signal), false);
      assert.equal(await engine.heads.get(room), undefined);
      const mustNotAsk = async () => assert.fail('a purge that has begun must not ask again');
      assert.equal(await purge.purge(where, mustNotAsk, never), true);

      for (const { table, column, holds } of purge.tables) {
        assert.equal(await count(table, column, holds === 'room id' ? room : roomNid), 0, table);
      }
      for (const table of ['rooms', 'events', 'state_groups']) {
        assert.equal(await count(table, 'room_nid', roomNid), 0, table);
      }
      const left = await Promise.all(ofEvents.map(total));
      for (const [index, name] of ofEvents.entries()) assert.equal(left[index]! * 2, totals[index], name);
      assert.equal((await engine.userRooms.of(alice)).has(room), false);
      await assert.rejects(play.say(alice, room, 'hello?'), { errcode: 'M_FORBIDDEN' });
      await play.say(alice, kept, 'still here');
    });
  });
});
