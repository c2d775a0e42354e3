import { LRUCache } from 'lru-cache';
import type { Database } from '../../kernel/database/index.ts';
import { getRoomVersion, type Membership, type RoomVersion, stateKeyOf } from '../../protocol/index.ts';
import { GroupChain } from '../state/group-chain.ts';
import type { StateGroups } from '../state/state-groups.ts';
import type { RoomTables } from '../tables.ts';
import { type Extremity, RoomHead, type StateEntry } from './room-head.ts';

/** The heads of active rooms. */
export class RoomHeads {
  readonly #database: Database;
  readonly #groups: StateGroups;
  readonly #heads: LRUCache<string, RoomHead>;
  readonly #loading = new Map<string, Promise<RoomHead | undefined>>();
  /** Heads that run ahead of the disk may not be dropped and read again: how many commits each waits for. */
  readonly #ahead = new Map<string, { head: RoomHead; commits: number }>();

  /** @param size how many entries of current state all heads together may hold */
  constructor(database: Database, groups: StateGroups, size: number) {
    this.#database = database;
    this.#groups = groups;
    this.#heads = new LRUCache({ maxSize: size, sizeCalculation: (head) => head.state.size + 1 });
  }

  /** The head when it is in memory. */
  peek(roomId: string): RoomHead | undefined {
    const head = this.#ahead.get(roomId)?.head ?? this.#heads.get(roomId);
    return head?.broken ? undefined : head;
  }

  /** The head of a room, `undefined` when this server does not know the room. */
  async get(roomId: string): Promise<RoomHead | undefined> {
    const known = this.peek(roomId);
    if (known) return known;
    let loading = this.#loading.get(roomId);
    if (!loading) {
      loading = this.#load(roomId).finally(() => this.#loading.delete(roomId));
      this.#loading.set(roomId, loading);
    }
    return loading;
  }

  /** The head of a room that is just being made. */
  create(roomNid: number, roomId: string, version: RoomVersion): RoomHead {
    const parts = { roomNid, roomId, version, extremities: [], state: new Map() };
    const head = new RoomHead({ ...parts, chain: new GroupChain() });
    this.#heads.set(roomId, head);
    return head;
  }

  /** The head has events that are not on disk yet. */
  commitBegins(head: RoomHead): void {
    const entry = this.#ahead.get(head.roomId);
    if (entry?.head === head) entry.commits++;
    else this.#ahead.set(head.roomId, { head, commits: 1 });
  }

  /** One commit of the head has settled. A failed one breaks it: what was built on it is lost with it. */
  commitEnds(head: RoomHead, succeeded: boolean): void {
    if (!succeeded) head.broken = true;
    const entry = this.#ahead.get(head.roomId);
    if (entry?.head === head && --entry.commits === 0) this.#ahead.delete(head.roomId);
    if (head.broken) this.#heads.delete(head.roomId);
    else if (this.#heads.peek(head.roomId) === head) this.#heads.set(head.roomId, head); // its size has changed
  }

  async #load(roomId: string): Promise<RoomHead | undefined> {
    const scanner = this.#database.scanner<RoomTables>();
    const room = await scanner
      .selectFrom('rooms')
      .selectAll()
      .where('room_id', '=', roomId)
      .executeTakeFirst();
    if (!room) return undefined;
    const version = getRoomVersion(room.version);
    if (!version) throw new Error(`room ${roomId} has unknown version ${room.version}`);
    const [state, extremities, chain] = await Promise.all([
      this.#loadState(room.room_nid),
      this.#loadExtremities(JSON.parse(room.extremities) as number[]),
      room.state_group === null ? new GroupChain() : this.#groups.chain(room.state_group),
    ]);
    const head = new RoomHead({ roomNid: room.room_nid, roomId, version, chain, extremities, state });
    this.#heads.set(roomId, head);
    return head;
  }

  async #loadState(roomNid: number): Promise<Map<string, StateEntry>> {
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
        'events.event_id',
      ])
      .where('current_state.room_nid', '=', roomNid)
      .execute();
    return new Map(
      rows.map((row) => [
        stateKeyOf(row.type, row.state_key),
        {
          nid: row.event_nid,
          eventId: row.event_id,
          membership: (row.membership as Membership | null) ?? undefined,
        },
      ]),
    );
  }

  async #loadExtremities(nids: readonly number[]): Promise<Extremity[]> {
    if (nids.length === 0) return [];
    const rows = await this.#database
      .reader<RoomTables>()
      .selectFrom('events')
      .select(['nid', 'event_id', 'depth'])
      .where('nid', 'in', nids)
      .execute();
    return rows.map((row) => ({ nid: row.nid, eventId: row.event_id, depth: row.depth }));
  }
}
