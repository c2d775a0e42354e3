import assert from 'node:assert/strict';
import { it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { type Database, migrate } from '../../kernel/database/index.ts';
import { streamMigrations } from '../../kernel/streams/index.ts';
import type { RoomHead, RoomTables } from '../../room-engine/index.ts';
import { roomMigrations } from '../../room-engine/migrations/index.ts';
import { directoryMigrations } from '../migrations.ts';
import type { DirectoryTables } from '../tables.ts';
import { roomServersMigration, serverChanges, writeServerChanges } from './room-servers.ts';

const olderDirectoryMigrations = directoryMigrations.slice(
  0,
  directoryMigrations.indexOf(roomServersMigration),
);
const migrationsOfRooms = [...streamMigrations, ...roomMigrations];

const rowsOf = async (database: Database) =>
  (
    await database
      .reader<DirectoryTables>()
      .selectFrom('room_servers')
      .selectAll()
      .orderBy('server_name')
      .orderBy('room_id')
      .execute()
  ).map((row) => `${row.server_name} ${row.room_id}`);

forSelectedDatabases(import.meta.url, (open) => {
  it('roomServersMigration adds the servers of the joined users of all rooms', async () => {
    const database = await open([...migrationsOfRooms, ...olderDirectoryMigrations]);
    const members: readonly (readonly [userId: string, roomNid: number, membership: string])[] = [
      ['@ann:here.test', 1, 'join'],
      ['@ben:far.test:8448', 1, 'join'],
      ['@ben:far.test:8448', 2, 'leave'],
      ['@carl:else.test', 2, 'join'],
      ...Array.from({ length: 1_100 }, (_, index) => [`@user${index}:far.test`, 1, 'join'] as const),
    ];
    await database.transaction<RoomTables, void>(async (writer) => {
      for (const roomNid of [1, 2])
        await writer
          .insertInto('rooms')
          .values({
            room_nid: roomNid,
            room_id: `!room${roomNid}`,
            version: '11',
            extremities: '[]',
            state_group: null,
            created_ts: 1,
            partial_state: null,
            former_extremities: null,
          })
          .execute();
      for (const [userId, roomNid, membership] of members)
        await writer
          .insertInto('memberships')
          .values({
            user_id: userId,
            room_nid: roomNid,
            membership,
            forgotten: 0,
            event_nid: 1,
            stream: 1,
          })
          .execute();
    });
    await migrate(database, [...migrationsOfRooms, ...directoryMigrations]);
    assert.deepEqual(await rowsOf(database), [
      'else.test !room2',
      'far.test !room1',
      'far.test:8448 !room1',
      'here.test !room1',
    ]);
  });

  it('serverChanges returns the servers to add to the rows of a room and to remove from them, and none after the changes are written', async () => {
    const database = await open([...migrationsOfRooms, ...directoryMigrations]);
    const write = async (members: Readonly<Record<string, string>>) => {
      const head = { roomId: '!room', members: new Map(Object.entries(members)) } as unknown as RoomHead;
      const changes = await serverChanges(database, head);
      await database.transaction<DirectoryTables, void>((writer) =>
        writeServerChanges(writer, '!room', changes),
      );
      return changes;
    };
    const first = { '@a:one.test': 'join', '@b:one.test': 'join', '@c:two.test': 'invite' };
    assert.deepEqual(await write(first), { added: ['one.test'], removed: [] });
    assert.deepEqual(await write(first), { added: [], removed: [] });
    const second = { '@a:one.test': 'leave', '@c:two.test': 'join' };
    assert.deepEqual(await write({ ...second, '@b:one.test': 'join' }), { added: ['two.test'], removed: [] });
    assert.deepEqual(await write({ ...second, '@b:one.test': 'ban' }), { added: [], removed: ['one.test'] });
    assert.deepEqual(await rowsOf(database), ['two.test !room']);
  });

  it('serverChanges compares only the servers that the caller names', async () => {
    const database = await open([...migrationsOfRooms, ...directoryMigrations]);
    const members = new Map([['@a:one.test', 'join'] as const, ['@b:two.test', 'join'] as const]);
    const head = { roomId: '!room', members } as unknown as RoomHead;
    const changesOf = (...servers: string[]) => serverChanges(database, head, new Set(servers));
    assert.deepEqual(await changesOf(), { added: [], removed: [] });
    assert.deepEqual(await changesOf('one.test', 'three.test'), { added: ['one.test'], removed: [] });
    await database.transaction<DirectoryTables, void>((writer) =>
      writeServerChanges(writer, '!room', { added: ['one.test', 'two.test', 'three.test'], removed: [] }),
    );
    assert.deepEqual(await changesOf('one.test', 'three.test'), { added: [], removed: ['three.test'] });
    assert.deepEqual(await changesOf('two.test'), { added: [], removed: [] });
  });
});
