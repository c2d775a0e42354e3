import type { Database } from '../../kernel/database/index.ts';
import { LoadTogether } from '../../kernel/load-together.ts';
import type { TimeSlices } from '../../kernel/time-slices.ts';
import { getRoomVersion, type Membership, stateMapKey } from '../../protocol/index.ts';
import { parsePartialState } from '../partial-state.ts';
import type { RoomTables } from '../tables.ts';
import type { Extremity } from './extremity.ts';
import { HeadState } from './head-state.ts';
import type { InMemoryHeadFields } from './in-memory-head.ts';

/** The head of a room (its current state and forward extremities) as it is stored in the database. */
export interface StoredHead extends InMemoryHeadFields {
  readonly stateGroup: number | undefined;
}

type RoomRow = RoomTables['rooms'];

/** Maximum number of forward extremities that are requested at once. */
const extremitiesAtOnce = 500;

/** Reads the heads of rooms from the database; heads that are requested at the same time share queries. */
export class StoredHeads {
  readonly #database: Database;
  readonly #slices: TimeSlices;
  readonly #rooms: LoadTogether<string, RoomRow>;
  readonly #extremities: LoadTogether<number, Extremity>;

  constructor(database: Database, slices: TimeSlices) {
    this.#database = database;
    this.#slices = slices;
    this.#rooms = new LoadTogether((roomIds) => readRooms(database, roomIds));
    this.#extremities = new LoadTogether((nids) => readExtremities(database, nids));
  }

  /** Reads a head; `undefined` when this server does not know the room. */
  async read(roomId: string): Promise<StoredHead | undefined> {
    const room = await this.#rooms.get(roomId);
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
      formerExtremities: JSON.parse(room.former_extremities ?? '[]') as number[],
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

  /** Returns the extremities in the order of their nids. */
  async #readExtremities(nids: readonly number[]): Promise<Extremity[]> {
    const extremities: Extremity[] = [];
    for (let start = 0; start < nids.length; start += extremitiesAtOnce) {
      const chunk = nids.slice(start, start + extremitiesAtOnce);
      const read = await this.#extremities.getMany(chunk);
      for (const nid of chunk) {
        const extremity = read.get(nid);
        if (extremity) extremities.push(extremity);
      }
    }
    return extremities.sort((a, b) => a.nid - b.nid);
  }
}

async function readRooms(database: Database, roomIds: readonly string[]): Promise<Map<string, RoomRow>> {
  const scanner = database.scanner<RoomTables>();
  const rows = await scanner.selectFrom('rooms').selectAll().where('room_id', 'in', roomIds).execute();
  return new Map(rows.map((row) => [row.room_id, row]));
}

async function readExtremities(database: Database, nids: readonly number[]): Promise<Map<number, Extremity>> {
  const rows = await database
    .reader<RoomTables>()
    .selectFrom('events')
    .select(['nid', 'event_id', 'depth', 'state_group'])
    .where('nid', 'in', nids)
    .execute();
  return new Map(
    rows.map(({ nid, event_id: eventId, depth, state_group }) => [
      nid,
      { nid, eventId, depth, stateGroup: state_group ?? undefined },
    ]),
  );
}
