import type { Writer } from '../../kernel/database/index.ts';
import type { PusherTables } from '../tables.ts';

type Throttle = Pick<PusherTables['mail_throttles'], 'sent_at' | 'pause' | 'newest_at'>;

const minute = 60_000;
const hour = 60 * minute;

/**
 * Milliseconds of the first pause after a mail that contains a room. During a pause, the room causes no further mail;
 * the pause does not change what a mail contains: each mail shows the pending events of all rooms. This constant and
 * the next three are the same as in the reference server (`THROTTLE_START_MS`, `THROTTLE_MULTIPLIER`, `THROTTLE_MAX_MS`
 * and `THROTTLE_RESET_AFTER_MS` in `synapse/push/emailpusher.py`). The reference server lengthens the pause with each
 * event of a mail; this server lengthens it once with each mail.
 */
const firstPause = 10 * minute;

/** While the conversation continues, each pause is this many times as long as the previous one. */
const pauseFactor = 144;

/** Maximum milliseconds of a pause. */
const maxPause = 24 * hour;

/** After this many milliseconds without events that notify the user, the next pause is a first one again. */
const resetAfter = 12 * hour;

/** Returns the earliest time of the next mail that a room causes, in milliseconds since the epoch. */
export const roomReadyAt = (throttle: Throttle | undefined): number =>
  throttle ? throttle.sent_at + throttle.pause : 0;

/**
 * Returns the throttle of a room after a mail that contains it.
 * @param addedAt when the oldest and the newest event of the room in the mail became pending, in milliseconds since the epoch
 */
export function throttleAfter(
  previous: Throttle | undefined,
  now: number,
  addedAt: { readonly oldest: number; readonly newest: number },
): Throttle {
  const isReset = !previous || addedAt.oldest - previous.newest_at > resetAfter;
  const pause = isReset ? firstPause : Math.min(previous.pause * pauseFactor, maxPause);
  return { sent_at: now, pause, newest_at: addedAt.newest };
}

/** Returns the throttles of a pusher by room id. */
export async function readThrottles(
  reader: Pick<Writer<PusherTables>, 'selectFrom'>,
  pusherId: number,
): Promise<Map<string, Throttle>> {
  const rows = await reader
    .selectFrom('mail_throttles')
    .selectAll()
    .where('pusher_id', '=', pusherId)
    .execute();
  return new Map(rows.map((row) => [row.room_id, row]));
}

/** Stores the throttle of a room for a pusher, in place of an earlier one. */
export async function writeThrottle(
  writer: Writer<PusherTables>,
  key: { readonly pusherId: number; readonly userId: string; readonly roomId: string },
  throttle: Throttle,
): Promise<void> {
  const { pusherId: pusher_id, userId: user_id, roomId: room_id } = key;
  await writer
    .insertInto('mail_throttles')
    .values({ pusher_id, user_id, room_id, ...throttle })
    .onConflict((conflict) => conflict.columns(['pusher_id', 'room_id']).doUpdateSet(throttle))
    .execute();
}
