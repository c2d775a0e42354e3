import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Randomness } from '../../kernel/randomness.ts';
import type { Sequence, Stream, StreamWriter } from '../../kernel/streams/index.ts';
import type { TimeSlices } from '../../kernel/time-slices.ts';
import type { EventSigner } from '../../protocol/index.ts';
import type { UserRooms } from '../membership/user-rooms.ts';
import type { PolicyServers } from '../policy/policy-servers.ts';
import type { ReceivedEventChecks } from '../received-event-checks.ts';
import type { MessageRetention } from '../retention/message-retention.ts';
import type { AuthEdges } from '../state/auth-edges.ts';
import type { StateGroups } from '../state/state-groups.ts';
import type { WritableStateKeys } from '../state/writable-state-keys.ts';
import type { RoomFact } from '../stored-event.ts';
import type { EventStore } from '../timeline/event-store.ts';
import type { EventWriter } from '../timeline/event-writer.ts';
import type { WritableHeads } from '../timeline/writable-heads.ts';
import type { StateResolver } from './states/state-resolver.ts';

/** Reads, creates and resolves the states of rooms. */
export interface RoomStates {
  readonly groups: StateGroups;
  readonly stateKeys: WritableStateKeys;
  readonly authEdges: AuthEdges;
  readonly groupIds: Sequence;
  readonly resolver: StateResolver;
}

/** Checks of events besides the authorization rules. */
export interface PlacementChecks {
  readonly policies: PolicyServers;
  readonly retention: MessageRetention;
  /** Checks of modules; absent where there are none. */
  readonly received: ReceivedEventChecks | undefined;
}

/** The dependencies of the classes of placement. */
export interface PlacementDeps {
  readonly database: Database;
  readonly events: EventStore;
  readonly states: RoomStates;
  readonly checks: PlacementChecks;
  readonly heads: WritableHeads;
  readonly userRooms: UserRooms;
  readonly writer: EventWriter;
  /** Writes facts to streams, in the transactions that make the changes. */
  readonly streams: StreamWriter;
  /** The stream of the facts of rooms. */
  readonly stream: Stream<RoomFact>;
  readonly roomNids: Sequence;
  readonly signer: EventSigner;
  readonly clock: Clock;
  readonly randomness: Randomness;
  /** Yields to other work between steps of work that grows with the size of rooms. */
  readonly slices: TimeSlices;
}
