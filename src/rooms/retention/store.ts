import type { Database } from '../../kernel/database/index.ts';
import type { RoomTables } from '../../room-engine/index.ts';

/** A room with its retention policy and the events that are never deleted. */
export interface RoomWithPolicy {
  readonly roomId: string;
  readonly roomNid: number;
  /** nid of the `m.room.retention` event of the room. */
  readonly policyNid: number | undefined;
  /**
   * nids of events that are never deleted: the create event, the forward extremities, and former forward extremities.
   * The list begins with 0, which is not the nid of any event, so that it is never empty.
   */
  readonly kept: readonly number[];
}

/** State key nids of the state events that are read; `undefined` where no room has such an event. */
export interface PolicyKeys {
  readonly policy: number | undefined;
  readonly create: number | undefined;
}

/**
 * Reads rooms with their policies, in the order of the nids of the rooms.
 * @param onlyWithPolicy leaves out rooms without an `m.room.retention` event
 */
export async function roomsWithPolicies(
  database: Database,
  { policy = 0, create = 0 }: PolicyKeys,
  { after, limit, onlyWithPolicy }: { after: number; limit: number; onlyWithPolicy: boolean },
): Promise<RoomWithPolicy[]> {
  let query = database
    .scanner<RoomTables>()
    .selectFrom('rooms')
    .leftJoin('current_state as policy', (join) =>
      join.onRef('policy.room_nid', '=', 'rooms.room_nid').on('policy.key_nid', '=', policy),
    )
    .leftJoin('current_state as creation', (join) =>
      join.onRef('creation.room_nid', '=', 'rooms.room_nid').on('creation.key_nid', '=', create),
    )
    .select([
      'rooms.room_nid',
      'rooms.room_id',
      'rooms.extremities',
      'rooms.former_extremities',
      'policy.event_nid as policy_nid',
      'creation.event_nid as create_nid',
    ])
    .where('rooms.room_nid', '>', after)
    .where('rooms.state_group', 'is not', null)
    .orderBy('rooms.room_nid')
    .limit(limit);
  if (onlyWithPolicy) query = query.where('policy.event_nid', 'is not', null);
  return (await query.execute()).map((row) => ({
    roomId: row.room_id,
    roomNid: row.room_nid,
    policyNid: row.policy_nid ?? undefined,
    kept: [
      0,
      ...(row.create_nid === null ? [] : [row.create_nid]),
      ...(JSON.parse(row.extremities) as number[]),
      ...(JSON.parse(row.former_extremities ?? '[]') as number[]),
    ],
  }));
}

/**
 * Returns the smallest and the largest depth of the messages of a room that were sent before a time, except those in
 * `kept`; `undefined` where there are none.
 * @param sentBefore milliseconds since the epoch
 */
export async function depthsOfMessages(
  database: Database,
  { roomNid, kept }: RoomWithPolicy,
  sentBefore: number,
): Promise<{ readonly min: number; readonly max: number } | undefined> {
  const row = await database
    .scanner<RoomTables>()
    .selectFrom('event_times')
    .innerJoin('events', 'events.nid', 'event_times.nid')
    .select(({ fn }) => [fn.min('events.depth').as('min'), fn.max('events.depth').as('max')])
    .where('event_times.room_nid', '=', roomNid)
    .where('event_times.ts', '<', sentBefore)
    .where('event_times.nid', 'not in', kept)
    // Only state events have rows in `event_auth`; the create event, which has no auth events, is in `kept`.
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('event_auth')
            .select('event_auth.event_nid')
            .whereRef('event_auth.event_nid', '=', 'event_times.nid'),
        ),
      ),
    )
    .executeTakeFirst();
  const { min, max } = row ?? {};
  return typeof min === 'number' && typeof max === 'number' ? { min, max } : undefined;
}
