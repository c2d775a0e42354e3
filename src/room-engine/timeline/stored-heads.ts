import type { Database } from '../../kernel/database/index.ts';
import type { TimeSlices } from '../../kernel/time-slices.ts';
import { getRoomVersion, type Membership, stateMapKey } from '../../protocol/index.ts';
import { parsePartialState } from '../placement/entering/partial-state.ts';
import type { RoomTables } from '../tables.ts';
import type { Extremity } from './extremity.ts';
import { HeadState } from './head-state.ts';
import type { InMemoryHeadDeps } from './in-memory-head.ts';

/** A head as it is stored in the database. */
export interface StoredHead extends InMemoryHeadDeps {
  readonly stateGroup: number | undefined;
}

/** Reads the heads of rooms from the database. */
export class StoredHeads {
  readonly #database: Database;
  readonly #slices: TimeSlices;

  constructor(database: Database, slices: TimeSlices) {
    this.#database = database;
    this.#slices = slices;
  }

  /** Reads a head; `undefined` when this server does not know the room. */
  async read(roomId: string): Promise<StoredHead | undefined> {
    const scanner = this.#database.scanner<RoomTables>();
    const room = await scanner
      .selectFrom('rooms')
      .selectAll()
      .where('room_id', '=', roomId)
      .executeTakeFirst();
    if (!room) return undefined;
    const version = getRoomVersion(room.version);
    if (!version) throw new Error(`room ${roomId} has unknown version ${room.version}`);
    const [state, extremities] = await Promise.all([
      this.#readState(room.room_nid),
      this.#readExtremities(JSON.parse(room.extremities) as number[]),
    ]);
    return {
      roomNid: room.room_nid,
      roomId,
      version,
      extremities,
      stateGroup: room.state_group ?? undefined,
      ...state,
      ...parsePartialState(room.partial_state),
      formerExtremities: JSON.parse(room.loose_ends ?? '[]') as number[],
    };
  }

  async #readState(roomNid: number): Promise<{ state: HeadState; changedAt: number }> {
    const rows = await this.#database
      .scanner<RoomTables>()
      .selectFrom('current_state')
      .innerJoin('state_keys', 'state_keys.nid', 'current_state.key_nid')
      .innerJoin('events', 'events.nid', 'current_state.event_nid')
      .select([
        'state_keys.type',
        'state_keys.state_key',
        'current_state.event_nid',
        'current_state.membership',
        'current_state.stream',
        'events.event_id',
      ])
      .where('current_state.room_nid', '=', roomNid)
      .execute();
    const state = new HeadState();
    let changedAt = 0;
    await this.#slices.each(rows, (row) => {
      state.set(stateMapKey(row.type, row.state_key), {
        nid: row.event_nid,
        eventId: row.event_id,
        membership: (row.membership as Membership | null) ?? undefined,
        stream: row.stream,
      });
      changedAt = Math.max(changedAt, row.stream);
    });
    return { state, changedAt };
  }

  async #readExtremities(nids: readonly number[]): Promise<Extremity[]> {
    const extremities: Extremity[] = [];
    for (let start = 0; start < nids.length; start += 500) {
      const rows = await this.#database
        .reader<RoomTables>()
        .selectFrom('events')
        .select(['nid', 'event_id', 'depth', 'state_group'])
        .where('nid', 'in', nids.slice(start, start + 500))
        .orderBy('nid')
        .execute();
      for (const { nid, event_id, depth, state_group } of rows) {
        extremities.push({ nid, eventId: event_id, depth, stateGroup: state_group ?? undefined });
      }
    }
    return extremities;
  }
}
