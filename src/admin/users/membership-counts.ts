import { sql } from 'kysely';
import type { Database } from '../../kernel/database/index.ts';
import { parseJsonObject } from '../../protocol/index.ts';
import type { RoomTables } from '../../room-engine/index.ts';
import { contains } from '../paging/contains.ts';

/** Number of events that are read at once. */
const eventsAtOnce = 500;

/** The room and the state key of a membership event. */
interface MemberEvent {
  readonly roomNid: number;
  readonly stateKey: unknown;
}

/**
 * Counts the invites that a user has sent, and the joins of the user. Reads the events of all rooms in which the user
 * has a membership, without blocking other requests.
 */
export class MembershipCounts {
  readonly #database: Database;

  constructor({ database }: { readonly database: Database }) {
    this.#database = database;
  }

  /** Counts the invites that a user has sent. @param from milliseconds since the epoch */
  async sentInvites(userId: string, from: number): Promise<number> {
    let invites = 0;
    for await (const _ of this.#sentBy(userId, 'invite', from)) invites++;
    return invites;
  }

  /**
   * Counts the rooms that a user has joined since `from`, including rooms that the user has left again.
   * @param from milliseconds since the epoch
   */
  async joinedRooms(userId: string, from: number): Promise<number> {
    const rooms = new Set<number>();
    for await (const { roomNid, stateKey } of this.#sentBy(userId, 'join', from)) {
      if (stateKey === userId) rooms.add(roomNid);
    }
    return rooms.size;
  }

  /** Yields the invites or joins that a user has sent, in the order in which they were stored. */
  async *#sentBy(userId: string, membership: 'invite' | 'join', from: number): AsyncGenerator<MemberEvent> {
    const isSentByUser = contains(sql`e.json`, `"sender":${JSON.stringify(userId)}`);
    const isMembership = contains(sql`e.json`, `"membership":"${membership}"`);
    for (let after = 0; ; ) {
      const rows = await this.#database
        .scanner<RoomTables>()
        .selectFrom('memberships as m')
        .innerJoin('event_times as t', 't.room_nid', 'm.room_nid')
        .innerJoin('events as e', 'e.nid', 't.nid')
        .select(['e.nid', 'e.room_nid', 'e.json'])
        .where('m.user_id', '=', userId)
        .where('t.ts', '>=', from)
        .where('e.nid', '>', after)
        .where(isSentByUser)
        .where(isMembership)
        .orderBy('e.nid')
        .limit(eventsAtOnce)
        .execute();
      for (const row of rows) {
        const event = parseJsonObject(row.json, { numbers: 'as written' });
        const content = event['content'] as { readonly membership?: unknown };
        if (event['type'] !== 'm.room.member' || event['sender'] !== userId) continue;
        if (content.membership !== membership) continue;
        yield { roomNid: row.room_nid, stateKey: event['state_key'] };
      }
      const last = rows.at(-1);
      if (last === undefined || rows.length < eventsAtOnce) return;
      after = last.nid;
    }
  }
}
