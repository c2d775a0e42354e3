import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { directoryMigrations } from '../../directory/migrations.ts';
import { listedRoom, writeListedRooms } from '../../directory/room-stats/listed-rooms.ts';
import type { DirectoryTables } from '../../directory/tables.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { RoomTables } from '../../room-engine/index.ts';
import { roomMigrations } from '../../room-engine/migrations/index.ts';
import type { PageStart } from '../paging/page-cursors.ts';
import { randomNumbers } from '../test/random-numbers.ts';
import { type RoomFilter, RoomList, type RoomOrder, roomOrders } from './room-list.ts';

const migrations = [...roomMigrations, ...directoryMigrations];

type Room = DirectoryTables['room_stats'];

/** Inserts rooms with random values. @returns all rooms, and the ids of the published rooms */
async function insertRooms(database: Database, count: number) {
  const random = randomNumbers();
  const rooms: Room[] = [];
  const text = (prefix: string, below: number) =>
    `${prefix}${['a', 'Z', 'é', '😀', '!'][random(5)]}${random(below)}`;
  for (let index = 0; index < count; index++) {
    rooms.push({
      room_nid: 10 + 2 * index + random(2),
      room_id: `!${random(2)}${text('r', 10)}${index}:test`,
      name: random(3) === 0 ? null : text('n', 9),
      topic: null,
      canonical_alias: random(2) === 0 ? null : text('#', 90),
      avatar_url: null,
      join_rule: ['invite', 'public', 'knock'][random(3)]!,
      history_visibility: ['shared', 'joined'][random(2)]!,
      guest_can_join: random(2),
      room_type: null,
      encryption: random(2) === 0 ? null : 'm.megolm.v1.aes-sha2',
      version: String(1 + random(12)),
      creator: text('@', 50),
      federatable: random(9) === 0 ? 0 : 1,
      joined_members: random(5),
      joined_local_members: random(4),
      invited_members: 0,
      state_events: random(70),
      search_text: '',
    });
  }
  const published = new Set(rooms.filter(() => random(4) === 0).map((room) => room.room_id));
  await database.transaction<DirectoryTables & RoomTables, void>(async (writer) => {
    for (const room of rooms) await writer.insertInto('room_stats').values(room).execute();
    await writeListedRooms(writer, rooms.map(listedRoom));
    for (const room_id of published)
      await writer.insertInto('published_rooms').values({ room_id, network: '' }).execute();
  });
  return { rooms, published };
}

const depsOf = (database: Database) => ({
  database,
  caughtUp: () => Promise.resolve(),
});

/** Compares texts as the databases do, by their UTF-8 bytes, and numbers as numbers. */
const compare = (one: string | number, other: string | number): number =>
  typeof one === 'number'
    ? one - Number(other)
    : Buffer.compare(Buffer.from(one), Buffer.from(String(other)));

forSelectedDatabases(import.meta.url, (open) => {
  describe('RoomList', () => {
    it('returns the rooms at random offsets as in a sorted array of all rooms, in all orders and directions, with filters', async () => {
      const database = await open(migrations);
      const { rooms, published } = await insertRooms(database, 300);
      const values: Readonly<Record<RoomOrder, (room: Room) => string | number>> = {
        name: (room) => room.name ?? '',
        alphabetical: (room) => room.name ?? '',
        size: (room) => room.joined_members,
        canonical_alias: (room) => room.canonical_alias ?? '',
        joined_members: (room) => room.joined_members,
        joined_local_members: (room) => room.joined_local_members,
        version: (room) => room.version,
        creator: (room) => room.creator,
        encryption: (room) => room.encryption ?? '',
        federatable: (room) => room.federatable,
        public: (room) => (published.has(room.room_id) ? 1 : 0),
        join_rules: (room) => room.join_rule,
        guest_access: (room) => room.guest_can_join,
        history_visibility: (room) => room.history_visibility,
        state_events: (room) => room.state_events,
      };
      const largestFirst = ['size', 'joined_members', 'joined_local_members', 'version', 'state_events'];
      const filters: readonly [RoomFilter, (room: Room) => boolean][] = [
        [{}, () => true],
        [{ isEmpty: false }, (room) => room.joined_members > 0],
        [{ isPublic: false }, (room) => !published.has(room.room_id)],
      ];
      const list = new RoomList(depsOf(database));
      const random = randomNumbers();
      for (const by of roomOrders) {
        for (const backwards of [false, true]) {
          for (const [filter, isSelected] of filters) {
            const sign = largestFirst.includes(by) === backwards ? 1 : -1;
            const value = values[by];
            const expected = rooms
              .filter(isSelected)
              .sort(
                (one, other) =>
                  sign * (compare(value(one), value(other)) || compare(one.room_id, other.room_id)),
              );
            const total = expected.length;
            for (const offset of [random(total), total - 4, total + 5]) {
              const message = JSON.stringify({ by, backwards, filter, offset });
              const read = async (start: PageStart, first: number) => {
                const page = { start, limit: 3, total };
                const { rows, next } = await list.page(filter, { by, backwards }, page);
                const ids = expected.slice(first, first + 3).map((room) => room.room_id);
                const found = rows.map((room) => room.room_id);
                assert.deepEqual(found, ids, message);
                assert.equal(next?.key, first + 3 < total ? ids.at(-1) : undefined, message);
                return next;
              };
              const next = await read({ offset }, offset);
              if (next) await read({ after: next }, offset + 3);
            }
          }
        }
      }
    });
  });
});
