import type { Database, Reader } from '../../kernel/database/index.ts';
import type { PushTables } from '../tables.ts';
import { MarkList, type StoredMarks } from './mark-list.ts';
import { Tally } from './tally.ts';

/** The user and the room of a tally. A tally holds the unread events of one user in one room. */
export interface TallyOwner {
  readonly userId: string;
  readonly roomId: string;
}

/** A tally with its user and room. */
export interface OwnedTally extends TallyOwner {
  readonly tally: Tally;
}

/** An unread event in a row that an earlier version of the server wrote; some have no time of sending. */
type OlderMark = [stream: number, highlight: 0 | 1, threadId?: string | null, sentTs?: number | null];

/**
 * Returns the tallies that were saved last, with one query for each user; absent where none was saved.
 * @param owners without repetitions
 */
export async function readTallies(
  reader: Reader<PushTables>,
  owners: readonly TallyOwner[],
): Promise<Map<TallyOwner, Tally>> {
  const tallies = new Map<TallyOwner, Tally>();
  for (const [userId, ownersOfUser] of Map.groupBy(owners, (owner) => owner.userId)) {
    const byRoom = new Map(ownersOfUser.map((owner) => [owner.roomId, owner]));
    const rows = await reader
      .selectFrom('unread_tallies')
      .select(['room_id', 'up_to', 'marks'])
      .where('user_id', '=', userId)
      .where('room_id', 'in', [...byRoom.keys()])
      .execute();
    for (const { room_id: roomId, up_to: upTo, marks } of rows) {
      const owner = byRoom.get(roomId);
      if (owner) tallies.set(owner, new Tally(upTo, marksOf(JSON.parse(marks))));
    }
  }
  return tallies;
}

/** Saves each tally that has evaluated later events than the stored tally of its user and room. */
export async function saveTallies(database: Database, tallies: readonly OwnedTally[]): Promise<void> {
  if (tallies.length === 0) return;
  await database.batch([
    {
      sql: 'insert into unread_tallies (user_id, room_id, up_to, marks) values (?, ?, ?, ?) on conflict (user_id, room_id) do update set up_to = excluded.up_to, marks = excluded.marks where unread_tallies.up_to < excluded.up_to',
      rows: tallies.map(({ userId, roomId, tally }) => [
        userId,
        roomId,
        tally.upTo,
        JSON.stringify(tally.toStored()),
      ]),
    },
  ]);
}

function marksOf(stored: StoredMarks | readonly OlderMark[]): MarkList {
  if ('streams' in stored) return MarkList.fromStored(stored);
  const marks = new MarkList(true);
  for (const [stream, highlight, threadId, sentTs] of stored) {
    marks.push({
      stream,
      highlight: highlight === 1,
      threadId: threadId ?? undefined,
      sentTs: sentTs ?? Number.POSITIVE_INFINITY,
    });
  }
  return marks;
}
