import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database, Reader } from '../kernel/database/index.ts';
import { Stream } from '../kernel/streams/index.ts';
import { TimeSlices } from '../kernel/time-slices.ts';
import type { StrippedState } from '../protocol/index.ts';
import { type Erasures, noErasures } from './erasure/erasures.ts';
import { type IgnoredUserLists, noIgnoredUsers } from './ignored-user-lists.ts';
import type { UserRoom } from './membership/user-room.ts';
import { UserRooms, type UserRoomsReader } from './membership/user-rooms.ts';
import type { CompletedRoom, PartialRoom } from './partial-state.ts';
import {
  readAllBackwardExtremities,
  readPartialRooms,
  readRoomsCompletedSince,
  readStrippedState,
} from './placement/store.ts';
import { MessageRetention, type RetentionOptions } from './retention/message-retention.ts';
import { RoomFactCodec } from './room-fact-codec.ts';
import { type RoomRemoval, removalStream } from './room-removals.ts';
import { authChain } from './state/auth-chains.ts';
import { AuthEdges } from './state/auth-edges.ts';
import { StateGroups } from './state/state-groups.ts';
import { StateKeys } from './state/state-keys.ts';
import type { RoomFact, StoredEvent } from './stored-event.ts';
import type { RoomTables } from './tables.ts';
import { type EventReader, EventStore } from './timeline/event-store.ts';
import { FollowedHeads } from './timeline/followed-heads.ts';
import { NearestEvents } from './timeline/nearest-event.ts';
import type { HeadReader } from './timeline/room-head.ts';
import {
  type StateDelta,
  type StateHistoryEntry,
  stateDeltas,
  stateHistory,
} from './timeline/state-history.ts';
import { StoredHeads } from './timeline/stored-heads.ts';
import { TransactionIds, type TransactionReader } from './timeline/transaction-ids.ts';

export interface EngineOptions {
  /** Freezes events in memory. */
  readonly use_frozen_dicts?: boolean;
  /** How old messages may become before they expire; absent: they never expire. */
  readonly retention?: RetentionOptions;
}

export interface RoomReaderDeps {
  readonly database: Database;
  /** The database of the state groups; by default `database`. */
  readonly stateDatabase?: Database;
  readonly clock: Clock;
  readonly caches: CacheRegistry;
  /** Maximum number of cached events, before it is multiplied by the cache factor. */
  readonly eventCacheSize: number;
  readonly options?: EngineOptions;
  /** Looks up ignored users; by default none. */
  readonly ignored?: IgnoredUserLists;
  /** Users who requested erasure; by default none. */
  readonly erased?: Erasures;
}

/** Maximum number of cached state keys. */
export const maxStateKeys = 100_000;
/** Maximum number of cached single entries of state groups. */
export const maxGroupEntries = 100_000;

/** The stores of a room reader. The main process shares them with its writer. */
export interface RoomStores {
  readonly reader: Reader<RoomTables>;
  /** Shared by all stores, because their work runs in the same turns of the event loop. */
  readonly slices: TimeSlices;
  readonly events: EventStore;
  readonly stream: Stream<RoomFact>;
  readonly removals: Stream<RoomRemoval>;
  readonly groups: StateGroups;
  readonly authEdges: AuthEdges;
  readonly transactions: TransactionIds;
  readonly userRooms: UserRooms;
  readonly storedHeads: StoredHeads;
  readonly retention: MessageRetention;
}

/** Opens the stores of rooms; their caches are empty. */
export function openStores({
  database,
  stateDatabase = database,
  clock,
  caches,
  ...deps
}: RoomReaderDeps): RoomStores {
  const reader = database.reader<RoomTables>();
  const slices = new TimeSlices(clock);
  const events = new EventStore(reader, caches, {
    size: deps.eventCacheSize,
    slices,
    freezesEvents: deps.options?.use_frozen_dicts === true,
  });
  const stream = new Stream('rooms', new RoomFactCodec(events));
  const removals = removalStream();
  const groups = new StateGroups({
    reader: stateDatabase.reader<RoomTables>(),
    scanner: stateDatabase.scanner<RoomTables>(),
    slices,
    caches,
    size: maxGroupEntries,
  });
  removals.subscribe((removal) => {
    events.followRemoval(removal);
    groups.followRemoval(removal);
  });
  return {
    reader,
    slices,
    events,
    stream,
    removals,
    groups,
    authEdges: new AuthEdges(reader, caches, slices),
    transactions: new TransactionIds(reader, caches),
    userRooms: new UserRooms(database, caches, stream, removals),
    storedHeads: new StoredHeads(database, slices),
    retention: new MessageRetention({ events, clock, options: deps.options?.retention }),
  };
}

/**
 * Reads rooms: events, states, members, and the heads of active rooms. Most slices need no more than this part of
 * `RoomWriter`. In processes other than the main process, it follows the facts of the writer.
 */
export class RoomReader {
  readonly events: EventReader;
  readonly nearestEvents: NearestEvents;
  readonly groups: StateGroups;
  readonly authEdges: AuthEdges;
  readonly stateKeys: StateKeys;
  readonly heads: HeadReader;
  readonly transactions: TransactionReader;
  readonly userRooms: UserRoomsReader;
  /** The facts of rooms, mostly events that were added to timelines. */
  readonly stream: Stream<RoomFact>;
  /** Deletions of stored data that are not the effect of an event, for instance purges of rooms. */
  readonly removals: Stream<RoomRemoval>;
  /** Looks up ignored users. */
  readonly ignored: IgnoredUserLists;
  /** Users whose events are hidden from users who join later. */
  readonly erased: Erasures;
  /** Decides which messages have expired by the retention policies of rooms. */
  readonly retention: MessageRetention;
  readonly #reader: Reader<RoomTables>;
  readonly #store: EventStore;

  protected constructor(deps: RoomReaderDeps, stores: RoomStores, stateKeys: StateKeys, heads: HeadReader) {
    this.#reader = stores.reader;
    this.events = stores.events;
    this.nearestEvents = new NearestEvents(stores.reader, stores.events);
    this.#store = stores.events;
    this.groups = stores.groups;
    this.authEdges = stores.authEdges;
    this.stateKeys = stateKeys;
    this.heads = heads;
    this.transactions = stores.transactions;
    this.userRooms = stores.userRooms;
    this.stream = stores.stream;
    this.removals = stores.removals;
    this.ignored = deps.ignored ?? noIgnoredUsers;
    this.erased = deps.erased ?? noErasures;
    this.retention = stores.retention;
  }

  /** Opens a reader in a process that does not write rooms; the facts on `stream` keep it up to date. */
  static follow(deps: RoomReaderDeps): RoomReader {
    const stores = openStores(deps);
    const { events, stream, removals, transactions } = stores;
    const heads = new FollowedHeads(stores.storedHeads, deps.caches);
    stream.subscribe((fact) => {
      events.follow(fact);
      transactions.follow(fact);
      heads.follow(fact);
    });
    removals.subscribe((removal) => heads.followRemoval(removal));
    const stateKeys = new StateKeys(stores.reader, deps.caches, stores.slices, maxStateKeys);
    return new RoomReader(deps, stores, stateKeys, heads);
  }

  /** Returns all values that an entry of a room's current state has had, oldest first. @param key as `stateMapKey` */
  async stateHistory(roomNid: number, key: string): Promise<StateHistoryEntry[]> {
    const keyNid = await this.stateKeys.find(key);
    return keyNid === undefined ? [] : stateHistory(this.#reader, this.#store, roomNid, keyNid);
  }

  /** Returns the last change of each entry of a room's current state that changed in `(after, upTo]` of the stream. */
  stateDeltas(roomNid: number, after: number, upTo: number): Promise<StateDelta[]> {
    return stateDeltas(this.#reader, roomNid, after, upTo);
  }

  /** Returns the state at an event, `stateMapKey(type, stateKey)` to nid; `undefined` while it is not known. */
  async stateAt(
    { stateBefore, stateGroup }: StoredEvent,
    when: 'before' | 'after',
  ): Promise<Map<string, number> | undefined> {
    const group = when === 'before' ? stateBefore : stateGroup;
    if (group === undefined) return undefined;
    const state = await this.groups.load(group);
    const names = await this.stateKeys.names([...state.keys()]);
    return new Map([...state.values()].map((nid, index) => [names[index] ?? '', nid]));
  }

  /**
   * Returns the nids of the auth chain of some state events, ascending.
   * @param limit maximum number of nids; the highest nids are returned; absent: all nids
   */
  authChain(nids: Iterable<number>, limit?: number): Promise<number[]> {
    return authChain(this.authEdges, nids, limit);
  }

  /**
   * Returns the ids of the backward extremities of a room: events that are not on its timeline, but are previous events
   * of timeline events.
   */
  async backwardExtremities(roomId: string): Promise<string[]> {
    const head = await this.heads.get(roomId);
    return head ? [...(await readAllBackwardExtremities(this.#reader, head.roomNid)).keys()] : [];
  }

  /** Returns the rooms whose partial state became complete after a position on the stream. */
  roomsCompletedSince(after: number): Promise<CompletedRoom[]> {
    return readRoomsCompletedSince(this.#reader, after);
  }

  /** Returns the rooms whose state is still partial. */
  partialRooms(): Promise<PartialRoom[]> {
    return readPartialRooms(this.#reader);
  }

  /**
   * Returns the stripped state that a remote server sent with a user's invite or knock; `undefined` where there is
   * none, or where the membership event is in the current state of the room.
   */
  async strippedState(
    userId: string,
    { roomId, roomNid, eventNid }: UserRoom,
  ): Promise<readonly StrippedState[] | undefined> {
    const head = await this.heads.get(roomId);
    if (head?.entry('m.room.member', userId)?.nid === eventNid) return undefined;
    return readStrippedState(this.#reader, roomNid, userId);
  }

  /** Returns whether two users are joined to a common room. */
  async shareRoom(userId: string, otherUserId: string): Promise<boolean> {
    return (await this.userRooms.shared(userId, otherUserId)).length > 0;
  }
}
