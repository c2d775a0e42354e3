import assert from 'node:assert/strict';
import type { OpenDatabase } from '../databases/databases.ts';
import { UnreliableDatabase } from '../databases/unreliable-database.ts';
import { type RoomsTuning, RoomsUnderTest } from './rooms.ts';

/** Opens rooms on a database whose batches a test can delay or fail. */
export async function openUnreliableRooms(open: OpenDatabase, tuning: RoomsTuning = {}) {
  let database: UnreliableDatabase | undefined;
  const fixture = await RoomsUnderTest.open(open, [], {
    ...tuning,
    wrapDatabase: (inner) => {
      database = new UnreliableDatabase(inner);
      return database;
    },
  });
  assert.ok(database);
  return { fixture, database };
}
