import type { OpenDatabase } from '../../../../test/support/databases/databases.ts';
import { systemClock } from '../../clock.ts';
import type { Database, Migration } from '../../database/index.ts';
import { silentLogger } from '../../observability/index.ts';
import { LocalStreams, type Stream, streamMigrations } from '../index.ts';

/** A table whose rows are stored together with facts. */
export interface NoteTables {
  notes: { position: number; text: string };
}

const notes: Migration = {
  name: 'test/notes',
  async up({ db }) {
    await db.schema
      .createTable('notes')
      .addColumn('position', 'bigint', (column) => column.primaryKey())
      .addColumn('text', 'text', (column) => column.notNull())
      .execute();
  },
};

/** Opens streams on a new database with the table of notes. */
export async function openStreams(open: OpenDatabase): Promise<[Database, LocalStreams]> {
  const database = await open([...streamMigrations, notes]);
  return [database, await LocalStreams.open({ database, clock: systemClock, log: silentLogger })];
}

/** Stores a note and publishes its text. @returns the position of the fact */
export const writeNote = (streams: LocalStreams, stream: Stream<string>, text: string): Promise<number> =>
  streams.write<NoteTables, number>(async (writer, publish) => {
    const position = publish(stream, text);
    await writer.insertInto('notes').values({ position, text }).execute();
    return position;
  });
