import { LRUCache } from 'lru-cache';
import type { Database } from '../../kernel/database/index.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { TimeSlices } from '../../kernel/time-slices.ts';
import { getRoomVersion, type Membership, type RoomVersion, stateMapKey } from '../../protocol/index.ts';
import { parsePartialState } from '../placement/entering/partial-state.ts';
import { GroupChain } from '../state/group-chain.ts';
import type { StateGroups } from '../state/state-groups.ts';
import type { RoomTables } from '../tables.ts';
import { isText } from './event-to-send.ts';
import { HeadState } from './head-state.ts';
import { type Extremity, RoomHead } from './room-head.ts';

/**
 * The heads of active rooms. A room never has two that are in use: as long as anybody holds its head, for instance to
 * write what has been added to it, that one is given out, also when it was dropped from the cache.
 */
export class RoomHeads {
  readonly #database: Database;
  readonly #groups: StateGroups;
  readonly #cache: LRUCache<string, RoomHead>;
  readonly #inUse = new Map<string, WeakRef<RoomHead>>();
  readonly #unused = new FinalizationRegistry<string>((roomId) => {
    if (!this.#inUse.get(roomId)?.deref()) this.#inUse.delete(roomId);
  });
  readonly #loading = new LoadOnce<string, RoomHead | undefined>();
  /** By room: resolves when the last events of its broken head have settled. */
  readonly #settling = new Map<string, Promise<void>>();
  /** Rooms that are being deleted. */
  readonly #retired = new Set<string>();

  readonly #slices: TimeSlices;

  /** @param size how many entries of current state all heads together may hold */
  constructor(database: Database, groups: StateGroups, slices: TimeSlices, size: number) {
    this.#database = database;
    this.#groups = groups;
    this.#slices = slices;
    this.#cache = new LRUCache({ maxSize: size, sizeCalculation: (head) => head.state.size + 1 });
  }

  /** The head when it is in memory. */
  peek(roomId: string): RoomHead | undefined {
    if (this.#retired.has(roomId)) return undefined;
    const cached = this.#cache.get(roomId);
    if (cached) return cached;
    const head = this.#inUse.get(roomId)?.deref();
    if (!head || head.broken) return undefined;
    this.#cache.set(roomId, head);
    return head;
  }

  /** The head of a room, `undefined` when this server does not know the room. */
  async get(roomId: string): Promise<RoomHead | undefined> {
    const known = this.peek(roomId);
    if (known) return known;
    if (!isText(roomId) || this.#retired.has(roomId)) return undefined;
    return this.#loading.run(roomId, async () => {
      await this.#settling.get(roomId);
      return this.#load(roomId);
    });
  }

  /** The head of a room that is about to be made; nobody is given it before `adopt`. */
  fresh(roomNid: number, roomId: string, version: RoomVersion): RoomHead {
    const parts = { roomNid, roomId, version, extremities: [], state: new HeadState() };
    return new RoomHead({ ...parts, chain: new GroupChain() });
  }

  /** From now on this is the head of its room. */
  adopt(head: RoomHead): void {
    this.#inUse.set(head.roomId, new WeakRef(head));
    this.#unused.register(head, head.roomId);
    this.#cache.set(head.roomId, head);
  }

  /** What has been added to the head could not be stored: it is loaded anew by whoever needs it next. */
  abandon(head: RoomHead): void {
    head.broken = true;
    if (this.#cache.peek(head.roomId) === head) this.#cache.delete(head.roomId);
  }

  /** Abandons a head whose last events are still on their way to the disk: it is loaded again when they have settled. */
  abandonAfter(head: RoomHead, settled: Promise<void>): void {
    const { roomId } = head;
    this.abandon(head);
    const settling = settled.finally(() => {
      if (this.#settling.get(roomId) === settling) this.#settling.delete(roomId);
    });
    this.#settling.set(roomId, settling);
  }

  /** From now on nobody is given the room's head; those who hold it look again before they add to it. */
  retire(roomId: string): void {
    this.#retired.add(roomId);
    const head = this.#inUse.get(roomId)?.deref() ?? this.#cache.peek(roomId);
    if (head) this.abandon(head);
  }

  /** The opposite: the head is loaded anew, if the room is still there. */
  restore(roomId: string): void {
    this.#retired.delete(roomId);
  }

  /** The head's state has grown on disk: the cache counts its entries again. */
  resized(head: RoomHead): void {
    if (this.#cache.peek(head.roomId) === head) this.#cache.set(head.roomId, head);
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
    const { partial, completedAt } = parsePartialState(room.partial_state);
    const head = new RoomHead({
      roomNid: room.room_nid,
      roomId,
      version,
      chain,
      extremities,
      ...state,
      partial,
      completedAt,
      looseEnds: JSON.parse(room.loose_ends ?? '[]') as number[],
    });
    this.adopt(head);
    return head;
  }

  async #loadState(roomNid: number): Promise<{ state: HeadState; changedAt: number }> {
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

  async #loadExtremities(nids: readonly number[]): Promise<Extremity[]> {
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
