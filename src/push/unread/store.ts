import type { Database, Reader } from '../../kernel/database/index.ts';
import type { PushTables } from '../tables.ts';
import { Tally, type UnreadMark } from './tally.ts';

/** A tally with its user and room. */
export interface OwnedTally {
  readonly userId: string;
  readonly roomId: string;
  readonly tally: Tally;
}

/** A mark as it is stored. */
type Row = [stream: number, highlight: 0 | 1, threadId?: string];

/** Returns the tally that was saved last, or one that begins at position 0. */
export async function readTally(reader: Reader<PushTables>, userId: string, roomId: string): Promise<Tally> {
  const row = await reader
    .selectFrom('unread_tallies')
    .select(['up_to', 'marks'])
    .where('user_id', '=', userId)
    .where('room_id', '=', roomId)
    .executeTakeFirst();
  if (!row) return new Tally(0, []);
  return new Tally(row.up_to, (JSON.parse(row.marks) as Row[]).map(fromRow));
}

/** Saves tallies, unless there is a newer one. */
export async function saveTallies(database: Database, tallies: readonly OwnedTally[]): Promise<void> {
  if (tallies.length === 0) return;
  await database.batch([
    {
      sql: 'insert into unread_tallies (user_id, room_id, up_to, marks) values (?, ?, ?, ?) on conflict (user_id, room_id) do update set up_to = excluded.up_to, marks = excluded.marks where unread_tallies.up_to < excluded.up_to',
      rows: tallies.map(({ userId, roomId, tally }) => [
        userId,
        roomId,
        tally.upTo,
        JSON.stringify(tally.marks.map(toRow)),
      ]),
    },
  ]);
}

const fromRow = ([stream, highlight, threadId]: Row): UnreadMark => ({
  stream,
  highlight: highlight === 1,
  threadId,
});

const toRow = ({ stream, highlight, threadId }: UnreadMark): Row =>
  threadId === undefined ? [stream, highlight ? 1 : 0] : [stream, highlight ? 1 : 0, threadId];
