import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database, Reader } from '../kernel/database/index.ts';
import type { Randomness } from '../kernel/randomness.ts';
import { BackgroundSigner } from '../kernel/signing/index.ts';
import { Sequence, Stream, type StreamWriter } from '../kernel/streams/index.ts';
import { TimeSlices } from '../kernel/time-slices.ts';
import type { EventSigner } from '../protocol/index.ts';
import { type Erasures, nobodyErased } from './erasure/erasures.ts';
import { type EventIndex, noEventIndex } from './event-index.ts';
import { type Ignoring, ignoringNobody } from './ignoring.ts';
import { UserRooms } from './membership/user-rooms.ts';
import type { Placement } from './placement/placement.ts';
import { RoomPlacement } from './placement/room-placement.ts';
import { StateResolver } from './placement/states/state-resolver.ts';
import type { PolicyPeers } from './policy/policy-peers.ts';
import { RoomPolicies } from './policy/room-policies.ts';
import { RoomFactCodec } from './room-fact-codec.ts';
import { AuthEdges } from './state/auth-edges.ts';
import { StateGroups } from './state/state-groups.ts';
import { type StateDelta, type StateHistoryEntry, stateDeltas, stateHistory } from './state/state-history.ts';
import { StateKeys } from './state/state-keys.ts';
import type { RoomFact } from './stored-event.ts';
import type { RoomTables } from './tables.ts';
import { Append } from './timeline/append.ts';
import { EventStore } from './timeline/event-store.ts';
import { EventWriter } from './timeline/event-writer.ts';
import { NearestEvents } from './timeline/nearest-event.ts';
import { RoomHeads } from './timeline/room-heads.ts';
import { TransactionIds } from './timeline/transaction-ids.ts';

export interface EngineOptions {
  /** Freezes events in memory. */
  readonly use_frozen_dicts?: boolean;
}

export interface RoomEngineDeps {
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly signer: EventSigner;
  readonly clock: Clock;
  readonly randomness: Randomness;
  /** Written with the events; by default nothing is indexed. */
  readonly eventIndex?: EventIndex;
  /** By default nobody ignores anybody. */
  readonly ignored?: Ignoring;
  /** By default nobody has asked for it. */
  readonly erased?: Erasures;
  readonly caches: CacheRegistry;
  /** How many events are kept in memory at factor 1. */
  readonly eventCacheSize: number;
  readonly options?: EngineOptions;
  /** By default no policy server is asked. */
  readonly policyPeers?: PolicyPeers | undefined;
}

/** How many entries of current state all rooms in memory may hold together; one is about 200 bytes. */
const stateEntriesInMemory = 1_000_000;

/** How many state keys, and how many single entries of older states, are kept in memory. */
const [stateKeysInMemory, groupEntriesInMemory] = [100_000, 100_000];

/**
 * What rooms are made of: their events on disk and in memory, their state, and the one way to add events. The
 * operations of this slice are built on it.
 */
export class RoomEngine {
  readonly events: EventStore;
  readonly nearestEvents: NearestEvents;
  readonly groups: StateGroups;
  readonly authEdges: AuthEdges;
  readonly stateKeys: StateKeys;
  readonly heads: RoomHeads;
  readonly timeline: Append;
  /** Takes the events of other servers. */
  readonly placement: Placement;
  readonly transactions: TransactionIds;
  readonly userRooms: UserRooms;
  /** Servers that look at the events of rooms before anybody else. */
  readonly policies: RoomPolicies;
  /** Events as they are added to the timelines of rooms. */
  readonly stream: Stream<RoomFact>;
  /** Whom users do not want to hear from. */
  readonly ignored: Ignoring;
  /** Whose events are kept from those who come later. */
  readonly erased: Erasures;
  readonly #reader: Reader<RoomTables>;
  readonly #writer: EventWriter;
  readonly #signer: BackgroundSigner;

  private constructor(
    deps: RoomEngineDeps,
    sequences: { keys: Sequence; groups: Sequence; rooms: Sequence },
  ) {
    const { database } = deps;
    const reader = database.reader<RoomTables>();
    // One for all: what they do comes one after the other in the same turn of the event loop.
    const slices = new TimeSlices(deps.clock);
    this.#reader = reader;
    this.ignored = deps.ignored ?? ignoringNobody;
    this.erased = deps.erased ?? nobodyErased;
    this.events = new EventStore(reader, deps.caches, {
      size: deps.eventCacheSize,
      slices,
      freezes: deps.options?.use_frozen_dicts === true,
    });
    this.stream = new Stream('rooms', new RoomFactCodec(this.events));
    this.nearestEvents = new NearestEvents(reader, this.events);
    const scanner = database.scanner<RoomTables>();
    this.groups = new StateGroups({ reader, scanner, slices, size: groupEntriesInMemory });
    this.authEdges = new AuthEdges(reader, slices);
    this.stateKeys = new StateKeys(reader, sequences.keys, slices, stateKeysInMemory);
    this.heads = new RoomHeads(database, this.groups, slices, stateEntriesInMemory);
    this.transactions = new TransactionIds(reader);
    this.userRooms = new UserRooms(database, this.stream);
    this.policies = new RoomPolicies({
      serverName: deps.signer.serverName,
      events: this.events,
      clock: deps.clock,
      peers: deps.policyPeers,
    });
    const { events, groups, authEdges, stateKeys, heads, stream, policies } = this;
    this.#signer = new BackgroundSigner(deps.signer.key.privateKey);
    this.#writer = new EventWriter({
      streams: deps.streams,
      stream,
      database,
      stateKeys,
      heads,
      events,
      groups,
      authEdges,
      index: deps.eventIndex ?? noEventIndex,
      signer: this.#signer,
      slices,
    });
    const shared = {
      ...deps,
      heads,
      events,
      stateKeys,
      stream,
      policies,
      slices,
      writer: this.#writer,
      groupIds: sequences.groups,
      roomNids: sequences.rooms,
    };
    const resolver = new StateResolver({ events, groups, stateKeys, authEdges, slices });
    const { userRooms } = this;
    const placement = new RoomPlacement({ ...shared, groups, authEdges, userRooms, resolver });
    this.placement = placement;
    this.timeline = new Append({ ...shared, ...placement.sending });
  }

  /** Opens the sequences that number rooms, state keys and state groups. */
  static async open(deps: RoomEngineDeps): Promise<RoomEngine> {
    const [keys, groups, rooms] = await Promise.all(
      ['state_keys', 'state_groups', 'rooms'].map((name) => Sequence.open(deps.database, name)),
    );
    if (!keys || !groups || !rooms) throw new Error('the sequences of rooms could not be opened');
    return new RoomEngine(deps, { keys, groups, rooms });
  }

  /** All values that an entry of a room's current state has had, oldest first. @param key as `stateMapKey` */
  async stateHistory(roomNid: number, key: string): Promise<StateHistoryEntry[]> {
    const keyNid = await this.stateKeys.find(key);
    return keyNid === undefined ? [] : stateHistory(this.#reader, this.events, roomNid, keyNid);
  }

  /** What changed of a room's current state in `(after, upTo]` of the stream. */
  stateDeltas(roomNid: number, after: number, upTo: number): Promise<StateDelta[]> {
    return stateDeltas(this.#reader, roomNid, after, upTo);
  }

  /** Whether two users are in a room together now. */
  async shareRoom(userId: string, otherUserId: string): Promise<boolean> {
    return (await this.userRooms.shared(userId, otherUserId)).length > 0;
  }

  /** Resolves when every event that has been added until now has settled. */
  settled(): Promise<void> {
    return this.#writer.settled();
  }

  /** Resolves when every event that was added has settled. */
  async close(): Promise<void> {
    await this.#writer.settled();
    this.#signer.close();
  }
}
