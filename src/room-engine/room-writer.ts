import type { Randomness } from '../kernel/randomness.ts';
import { BackgroundSigner } from '../kernel/signing/index.ts';
import { Sequence, type StreamWriter } from '../kernel/streams/index.ts';
import type { EventSigner } from '../protocol/index.ts';
import { EventChecks, type OpenEventChecks } from './event-checks.ts';
import { type EventIndex, noEventIndex } from './event-index.ts';
import type { UserRooms } from './membership/user-rooms.ts';
import { stateGroupIds } from './migrations/state-groups.ts';
import type { Placement } from './placement/placement.ts';
import { RoomPlacement } from './placement/room-placement.ts';
import { StateResolver } from './placement/states/state-resolver.ts';
import type { PolicyServerClient } from './policy/policy-servers.ts';
import { PolicyServers } from './policy/policy-servers.ts';
import type { ReceivedEventChecks } from './received-event-checks.ts';
import { maxStateKeys, openStores, RoomReader, type RoomReaderDeps, type RoomStores } from './room-reader.ts';
import { WritableStateKeys } from './state/writable-state-keys.ts';
import { EventAppender } from './timeline/append.ts';
import type { EventStore } from './timeline/event-store.ts';
import { EventWriter } from './timeline/event-writer.ts';
import type { TransactionIds } from './timeline/transaction-ids.ts';
import { WritableHeads } from './timeline/writable-heads.ts';

export interface RoomWriterDeps extends RoomReaderDeps {
  readonly streams: StreamWriter;
  readonly signer: EventSigner;
  readonly randomness: Randomness;
  /** Indexes events in the transaction that writes them; by default nothing is indexed. */
  readonly eventIndex?: EventIndex;
  /** Opens the checks of events of local users; by default there are none. */
  readonly eventChecks?: OpenEventChecks;
  /** Checks of events of remote users; by default there are none. */
  readonly receivedEventChecks?: ReceivedEventChecks | undefined;
  /** Sends requests to policy servers; absent: no policy server receives requests. */
  readonly policyServerClient?: PolicyServerClient | undefined;
}

/** The sequences of the numbers that are assigned to state keys, state groups and rooms. */
interface Sequences {
  readonly keys: Sequence;
  readonly groups: Sequence;
  readonly rooms: Sequence;
}

/**
 * Writes rooms: the only way to add events. Only the process with the role `main` has one; code that only
 * reads takes it as a `RoomReader`.
 */
export class RoomWriter extends RoomReader {
  declare readonly events: EventStore;
  declare readonly heads: WritableHeads;
  declare readonly transactions: TransactionIds;
  declare readonly userRooms: UserRooms;
  /** Adds the events of local users. */
  readonly timeline: EventAppender;
  /** Places the events of remote servers. */
  readonly placement: Placement;
  /** Checks of events of local users. */
  readonly checks: EventChecks;
  /** The policy servers of rooms, which check events before they are added. */
  readonly policies: PolicyServers;
  override readonly stateKeys: WritableStateKeys;
  readonly #writer: EventWriter;
  readonly #signer: BackgroundSigner;

  private constructor(
    deps: RoomWriterDeps,
    stores: RoomStores,
    { keys, groups: groupIds, rooms }: Sequences,
  ) {
    const { reader, slices, events, groups, authEdges } = stores;
    const { caches } = deps;
    const stateKeys = new WritableStateKeys(reader, { keys, caches, slices, size: maxStateKeys });
    const heads = new WritableHeads(stores.storedHeads, groups, caches);
    super(deps, stores, stateKeys, heads);
    stores.removals.subscribe((removal) => heads.followRemoval(removal));
    this.stateKeys = stateKeys;
    this.checks = new EventChecks(deps.eventChecks?.(this) ?? []);
    this.policies = new PolicyServers({
      serverName: deps.signer.serverName,
      events,
      clock: deps.clock,
      client: deps.policyServerClient,
    });
    this.#signer = new BackgroundSigner(deps.signer.key.privateKey, deps.clock);
    this.#writer = new EventWriter({
      streams: deps.streams,
      stream: stores.stream,
      database: deps.database,
      stateDatabase: deps.stateDatabase ?? deps.database,
      stateKeys,
      heads,
      events,
      groups,
      authEdges,
      index: deps.eventIndex ?? noEventIndex,
      signer: this.#signer,
      slices,
    });
    const resolver = new StateResolver({ caches, events, groups, stateKeys, authEdges, slices });
    // A cached resolution may name a state group that was removed.
    stores.removals.subscribe(({ kind }) => {
      if (kind === 'rebased') resolver.forgetAll();
    });
    const sharedDeps = {
      signer: deps.signer,
      clock: deps.clock,
      randomness: deps.randomness,
      events,
      heads,
      writer: this.#writer,
      roomNids: rooms,
    };
    const placement = new RoomPlacement({
      ...sharedDeps,
      database: deps.database,
      streams: deps.streams,
      stream: stores.stream,
      slices,
      userRooms: stores.userRooms,
      states: { groups, stateKeys, authEdges, groupIds, resolver },
      checks: {
        policies: this.policies,
        retention: stores.retention,
        received: deps.receivedEventChecks,
      },
    });
    this.placement = placement;
    this.timeline = new EventAppender({
      ...sharedDeps,
      ...placement.slowSends,
      stateKeys,
      groupIds,
      policies: this.policies,
      checks: this.checks,
    });
  }

  /** Makes the writer, and opens the sequences that number rooms, state keys and state groups. */
  static async open(deps: RoomWriterDeps): Promise<RoomWriter> {
    const [keys, groups, rooms] = await Promise.all([
      Sequence.open(deps.database, 'state_keys'),
      Sequence.open(deps.stateDatabase ?? deps.database, stateGroupIds),
      Sequence.open(deps.database, 'rooms'),
    ]);
    return new RoomWriter(deps, openStores(deps), { keys, groups, rooms });
  }

  /** Resolves when every event that has been added so far is on disk or has failed. */
  settled(): Promise<void> {
    return this.#writer.settled();
  }

  /** Stops the signing in the background as soon as every added event is on disk or has failed. */
  async close(): Promise<void> {
    await this.#writer.settled();
    this.#signer.close();
  }
}
