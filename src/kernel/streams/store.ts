import type { Database, Reader } from '../database/database.ts';

export interface PositionTables {
  number_bounds: { name: string; bound: number };
  stream_followers: { name: string; position: number };
}

/** The highest number that may have been given out by earlier runs; 0 in a new database. */
export async function readBound(reader: Reader<PositionTables>, name: string): Promise<number> {
  const row = await reader
    .selectFrom('number_bounds')
    .select('bound')
    .where('name', '=', name)
    .executeTakeFirst();
  return row?.bound ?? 0;
}

export function extendBound(database: Database, name: string, bound: number): Promise<void> {
  return database.transaction<PositionTables, void>(async (writer) => {
    await writer
      .insertInto('number_bounds')
      .values({ name, bound })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ bound }))
      .execute();
  });
}

/** How far a follower has come, `undefined` when it has never run. */
export async function readCursor(reader: Reader<PositionTables>, name: string): Promise<number | undefined> {
  const row = await reader
    .selectFrom('stream_followers')
    .select('position')
    .where('name', '=', name)
    .executeTakeFirst();
  return row?.position;
}

export function writeCursor(database: Database, name: string, position: number): Promise<void> {
  return database.transaction<PositionTables, void>(async (writer) => {
    await writer
      .insertInto('stream_followers')
      .values({ name, position })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ position }))
      .execute();
  });
}
