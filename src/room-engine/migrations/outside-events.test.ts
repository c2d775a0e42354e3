import assert from 'node:assert/strict';
import { it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { ann, ReferenceRoom } from '../../../test/support/rooms/reference-room.ts';
import { alice, bob, carol } from '../../../test/support/rooms/rooms.ts';
import { migrate } from '../../kernel/database/index.ts';
import { streamMigrations } from '../../kernel/streams/index.ts';
import type { RoomTables } from '../tables.ts';
import { roomMigrations } from './index.ts';
import { outsideEventsMigration } from './outside-events.ts';

/** The flags of an out-of-band event before the migration: `outlier`, and the flag of out-of-band events. */
const outOfBandFlags = 4 + 64;

/** The flags of a rejected outlier: `rejected` and `outlier`. */
const rejectedOutlierFlags = 1 + 4;

const olderMigrations = roomMigrations.slice(0, roomMigrations.indexOf(outsideEventsMigration));

forSelectedDatabases(import.meta.url, (open) => {
  it('outsideEventsMigration moves out-of-band events into a table of their own, and stores the user there if a membership refers to the event', async () => {
    const database = await open([...streamMigrations, ...olderMigrations]);
    const room = new ReferenceRoom('6');
    // The row of memberships for carol is missing, as after a newer invite: no membership refers to her invite.
    const invites = [alice, bob, carol].map((userId) => room.member(userId, 'invite', { sender: ann }));
    const outlier = room.member(carol, 'leave');
    const row = (eventId: string, nid: number, flags: number) => {
      const nullColumns = {
        stream: null,
        state_group: null,
        state_before: null,
        replaces: null,
        redacted_by: null,
      };
      const { json } = room.get(eventId);
      return { ...nullColumns, nid, event_id: eventId, room_nid: 1, depth: 5, flags, json };
    };
    await database.transaction<RoomTables, void>(async (writer) => {
      const names = { room_nid: 1, room_id: room.roomId, version: '6', extremities: '[]' };
      const emptyColumns = { state_group: null, created_ts: 1, partial_state: null };
      await writer
        .insertInto('rooms')
        .values({ ...names, ...emptyColumns } as RoomTables['rooms'])
        .execute();
      for (const [index, id] of invites.entries()) {
        await writer
          .insertInto('events')
          .values(row(id, index + 1, outOfBandFlags))
          .execute();
      }
      await writer
        .insertInto('events')
        .values(row(outlier, 9, rejectedOutlierFlags))
        .execute();
      for (const [index, userId] of [alice, bob].entries()) {
        const membership = { user_id: userId, room_nid: 1, membership: 'invite', forgotten: 0 };
        const position = { event_nid: index + 1, stream: index + 1 };
        await writer
          .insertInto('memberships')
          .values({ ...membership, ...position })
          .execute();
      }
    });
    await migrate(database, [...streamMigrations, ...roomMigrations]);
    const tables = database.reader<RoomTables>();
    const remaining = await tables.selectFrom('events').select(['nid', 'event_id']).execute();
    assert.deepEqual(remaining, [{ nid: 9, event_id: outlier }]);
    const outside = await tables.selectFrom('outside_events').selectAll().orderBy('nid').execute();
    assert.deepEqual(
      outside,
      invites.map((eventId, index) => ({
        nid: index + 1,
        room_nid: 1,
        event_id: eventId,
        user_id: [alice, bob, ''][index],
        server: '',
        version: '6',
        json: room.get(eventId).json,
      })),
    );
  });
});
