import assert from 'node:assert/strict';
import { it } from 'node:test';
import { CompiledQuery, sql } from 'kysely';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { type Database, migrate, type Writer } from '../../kernel/database/index.ts';
import { streamMigrations } from '../../kernel/streams/index.ts';
import { roomMigrations } from '../../room-engine/migrations/index.ts';
import { directoryMigrations } from '../migrations.ts';
import type { DirectoryTables } from '../tables.ts';
import {
  changedListedRooms,
  listedRoom,
  listedRoomChecks,
  listedRoomsMigration,
  writeListedRooms,
} from './listed-rooms.ts';
import { writeRoomStats } from './store.ts';

const olderDirectoryMigrations = directoryMigrations.slice(
  0,
  directoryMigrations.indexOf(listedRoomsMigration),
);
const migrationsOfRooms = [...streamMigrations, ...roomMigrations];

type Room = DirectoryTables['room_stats'];

const roomOf = (nid: number, values: Partial<Room> = {}): Room => ({
  room_nid: nid,
  room_id: `!room${nid}`,
  name: null,
  topic: null,
  canonical_alias: null,
  avatar_url: null,
  join_rule: 'invite',
  history_visibility: 'shared',
  guest_can_join: 0,
  room_type: null,
  encryption: null,
  version: '11',
  creator: '@ann:test',
  federatable: 1,
  joined_members: 1,
  joined_local_members: 1,
  invited_members: 0,
  state_events: 6,
  search_text: '',
  ...values,
});

/** Number of rows that one statement inserts. */
const rowsAtOnce = 400;

async function insertRooms(writer: Writer<DirectoryTables>, all: readonly Room[]): Promise<void> {
  for (let start = 0; start < all.length; start += rowsAtOnce)
    await writer
      .insertInto('room_stats')
      .values(all.slice(start, start + rowsAtOnce))
      .execute();
}

const rowsOf = (database: Database) =>
  database.reader<DirectoryTables>().selectFrom('listed_rooms').selectAll().orderBy('room_id').execute();

forSelectedDatabases(import.meta.url, (open) => {
  it('listedRoomsMigration adds all rooms, and cuts sorted texts after 200 characters', async () => {
    const database = await open([...migrationsOfRooms, ...olderDirectoryMigrations]);
    const all = Array.from({ length: 1_201 }, (_, index) => roomOf(index));
    all[7] = roomOf(7, {
      name: `X${'😀'.repeat(300)}`,
      canonical_alias: '#Pub:test:8448',
      encryption: 'm.megolm',
      join_rule: 'é'.repeat(5_000),
    });
    await database.transaction<DirectoryTables, void>(async (writer) => {
      await insertRooms(writer, all);
    });
    await migrate(database, [...migrationsOfRooms, ...directoryMigrations]);
    const rows = await rowsOf(database);
    assert.equal(rows.length, all.length);
    assert.deepEqual(
      rows.find((row) => row.room_id === '!room7'),
      {
        room_id: '!room7',
        name: `X${'😀'.repeat(199)}`,
        canonical_alias: '#Pub:test:8448',
        version: '11',
        creator: '@ann:test',
        encryption: 'm.megolm',
        join_rule: 'é'.repeat(200),
        history_visibility: 'shared',
        federatable: 1,
        guest_can_join: 0,
        search_text: `x${'😀'.repeat(300)}\npub`,
      },
    );
    assert.deepEqual(
      rows.filter((row) => row.room_id !== '!room7'),
      all
        .filter((room) => room.room_nid !== 7)
        .map(listedRoom)
        .sort((one, other) => (one.room_id < other.room_id ? -1 : 1)),
    );
  });

  it('changedListedRooms returns new and renamed rooms, and no room whose name and other listed values stay the same', async () => {
    const database = await open([...migrationsOfRooms, ...directoryMigrations]);
    const write = async (...changed: Room[]) => {
      const rows = await changedListedRooms(database, changed.map(listedRoom));
      await database.transaction<DirectoryTables, void>((writer) => writeListedRooms(writer, rows));
      return rows.map((row) => row.room_id);
    };
    assert.deepEqual(await write(roomOf(1), roomOf(2)), ['!room1', '!room2']);
    assert.deepEqual(await write(roomOf(1, { joined_members: 5, state_events: 9 }), roomOf(2)), []);
    assert.deepEqual(await write(roomOf(1, { name: 'Lake' }), roomOf(3)), ['!room1', '!room3']);
    assert.deepEqual(await write(), []);
    const expected = [roomOf(1, { name: 'Lake' }), roomOf(2), roomOf(3)];
    assert.deepEqual(await rowsOf(database), expected.map(listedRoom));
  });

  it('each order of the lists of rooms by texts, flags and counts reads an index, without a sort', async () => {
    const database = await open([...migrationsOfRooms, ...directoryMigrations]);
    const all = Array.from({ length: 1_201 }, (_, index) => roomOf(index, { name: `Room ${index % 50}` }));
    await database.transaction<DirectoryTables, void>(async (writer) => {
      await insertRooms(writer, all);
      for (let start = 0; start < all.length; start += rowsAtOnce)
        await writer
          .insertInto('listed_rooms')
          .values(all.slice(start, start + rowsAtOnce).map(listedRoom))
          .execute();
    });
    await database.transaction<DirectoryTables, unknown>((writer) => sql`analyze`.execute(writer));
    const texts = ['name', 'canonical_alias', 'version', 'creator', 'encryption', 'join_rule'];
    const flags = ['federatable', 'guest_can_join'];
    const orders = [
      ...[...texts, 'history_visibility', ...flags].map((column) => ['listed_rooms', column] as const),
      ...['joined_local_members', 'state_events'].map((column) => ['room_stats', column] as const),
    ];
    for (const [table, column] of orders) {
      for (const direction of ['asc', 'desc']) {
        const order = `${column} ${direction}, room_id ${direction}`;
        const explain = open.kind === 'sqlite' ? 'explain query plan' : 'explain';
        const text = `${explain} select room_id from ${table} order by ${order} limit 5`;
        const { rows } = await database.reader<DirectoryTables>().executeQuery(CompiledQuery.raw(text, []));
        assert.match(JSON.stringify(rows), new RegExp(`${table}_by_${column}`));
        assert.doesNotMatch(JSON.stringify(rows), /temp b-tree|sort/i);
      }
    }
  });

  it('listedRoomChecks find rows without rooms and rooms without rows, and mend both', async () => {
    const database = await open([...migrationsOfRooms, ...directoryMigrations]);
    await database.transaction<DirectoryTables, void>(async (writer) => {
      await writeRoomStats(writer, roomOf(1));
      await writeRoomStats(writer, roomOf(2));
      await writeListedRooms(writer, [roomOf(2), roomOf(3)].map(listedRoom));
    });
    const find = async () => {
      const found = await Promise.all(
        listedRoomChecks.map((check) => check.find({ main: database } as never)),
      );
      return found.map(({ examples }) => examples);
    };
    assert.deepEqual(await find(), [['!room3'], ['!room1']]);
    for (const { mend } of listedRoomChecks) await database.transaction((writer) => mend!(writer));
    assert.deepEqual(await find(), [[], []]);
    assert.deepEqual(await rowsOf(database), [roomOf(1), roomOf(2)].map(listedRoom));
  });
});
