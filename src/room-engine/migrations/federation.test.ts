import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Kysely } from 'kysely';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, bob, carol, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { type Database, migrate } from '../../kernel/database/index.ts';
import { streamMigrations } from '../../kernel/streams/index.ts';
import type { RoomTables } from '../tables.ts';
import { roomMigrations } from './index.ts';

const olderMigrations = roomMigrations.slice(
  0,
  roomMigrations.findIndex(({ name }) => name === 'rooms/0007-federation'),
);

/** Copies the rows of all rooms, without the columns that an older version of the program did not have. */
async function copyWithoutNewColumns(from: Database, to: Database): Promise<void> {
  const tables = from.reader<RoomTables>();
  const rooms = await tables.selectFrom('rooms').selectAll().execute();
  const events = await tables.selectFrom('events').selectAll().execute();
  const current = await tables.selectFrom('current_state').selectAll().execute();
  await to.transaction<RoomTables, void>(async (writer) => {
    const insert = writer as unknown as Kysely<Record<string, Record<string, unknown>>>;
    for (const { partial_state, former_extremities, ...room } of rooms) {
      await insert.insertInto('rooms').values(room).execute();
    }
    for (const event of events) await insert.insertInto('events').values(event).execute();
    for (const { stream, ...entry } of current) {
      await insert.insertInto('current_state').values(entry).execute();
    }
  });
}

forSelectedDatabases(import.meta.url, (open) => {
  it('federationMigration adds the auth edges and the positions of state entries to the rooms of an older database', async () => {
    const fixture = await RoomsUnderTest.open(open);
    for (const version of ['1', '10', '12']) {
      const options = { preset: 'public_chat', room_version: version } as const;
      const roomId = await fixture.rooms.creation.create(alice, options);
      for (const userId of [bob, carol]) await fixture.join(userId, roomId);
      for (let index = 0; index < 250; index++) await fixture.say(bob, roomId, `${index}`);
      await fixture.leave(bob, roomId);
    }
    const old = await open([...streamMigrations, ...olderMigrations]);
    await copyWithoutNewColumns(fixture.database, old);
    await migrate(old, [...streamMigrations, ...roomMigrations]);
    const edgesIn = (database: Database) =>
      database
        .reader<RoomTables>()
        .selectFrom('event_auth')
        .selectAll()
        .orderBy('event_nid')
        .orderBy('auth_nid')
        .execute();
    const edges = await edgesIn(old);
    assert.ok(edges.length > 30);
    assert.ok(edges.every(({ event_nid, auth_nid }) => auth_nid < event_nid));
    assert.deepEqual(edges, await edgesIn(fixture.database));
    const currentIn = (database: Database) =>
      database
        .reader<RoomTables>()
        .selectFrom('current_state')
        .selectAll()
        .orderBy('room_nid')
        .orderBy('key_nid')
        .execute();
    assert.deepEqual(await currentIn(old), await currentIn(fixture.database));
  });
});
