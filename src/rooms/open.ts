import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Jobs } from '../kernel/jobs/index.ts';
import { type Logger, type Metrics, silentLogger } from '../kernel/observability/index.ts';
import type { Randomness } from '../kernel/randomness.ts';
import type { StreamWriter } from '../kernel/streams/index.ts';
import type { EventSigner } from '../protocol/index.ts';
import type {
  Erasures,
  EventIndex,
  IgnoredUserLists,
  OpenEventChecks,
  ReceivedEventChecks,
} from '../room-engine/index.ts';
import { type EngineOptions, RoomWriter, ServerAcls } from '../room-engine/index.ts';
import type { OtherServers, RemoteMemberships } from '../room-federation/index.ts';
import {
  Incoming,
  InviteChecks,
  noOtherServers,
  RescindedInvites,
  ServerView,
  StateCompletion,
  storedStrippedState,
} from '../room-federation/index.ts';
import {
  type AliasOptions,
  type AliasReservations,
  type DirectoryRules,
  noDirectoryRules,
  type RemoteAliases,
  RoomAliases,
} from './aliases/room-aliases.ts';
import { BlockedRooms } from './blocking/blocked-rooms.ts';
import { type CreationOptions, RoomCreation } from './creation/create-room.ts';
import { ClientEvents, type EventAdditions, type OpenRelations } from './history/client-events.ts';
import { EventByTime } from './history/event-by-time.ts';
import { HistoryReader } from './history/history-reader.ts';
import { StateReader } from './history/state-reader.ts';
import { type RoomLimits, Throttle } from './limits.ts';
import { allowAllInvites, type InvitePolicy } from './membership/invite-policy.ts';
import { MemberContents, type MemberProfiles } from './membership/member-content.ts';
import {
  type LeaveCheck,
  type LocalUsers,
  type MembershipOptions,
  Memberships,
} from './membership/memberships.ts';
import { PublishedRooms } from './published-rooms.ts';
import type { Rooms } from './rooms.ts';
import { Sending } from './sending.ts';
import { StateChecks } from './state-checks.ts';
import { RoomUpgrade } from './upgrade/upgrade-room.ts';

/** Opens the service that joins, knocks, leaves and invites through other servers. It uses the given services of rooms. */
export type OpenRemoteMemberships = (
  rooms: Pick<Rooms, 'engine' | 'incoming' | 'completion'>,
) => RemoteMemberships;

/**
 * In a room that was joined without its members, a change of a membership waits for them at most this many
 * milliseconds.
 */
const membersTimeout = 10_000;

export interface RoomsDeps {
  readonly database: Database;
  /** The database of the state groups; by default `database`. */
  readonly stateDatabase?: Database;
  readonly streams: StreamWriter;
  /**
   * Registers the job that checks whether received invites to rooms that this server is not in are still valid. Absent:
   * they are not checked.
   */
  readonly jobs?: Pick<Jobs, 'register' | 'schedule'>;
  readonly signer: EventSigner;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly caches: CacheRegistry;
  /** Maximum number of cached events (`event_cache_size`), before it is multiplied by the cache factor. */
  readonly eventCacheSize: number;
  /** By default nothing is logged. */
  readonly log?: Logger;
  readonly metrics?: Metrics | undefined;
  readonly profiles: MemberProfiles;
  readonly users: LocalUsers;
  /** Rate limits; absent: nothing is limited. */
  readonly limits?: RoomLimits;
}

export type RoomsOptions = CreationOptions & MembershipOptions & AliasOptions & EngineOptions;

/** Extensions of rooms that other slices provide. */
export interface RoomExtensions {
  /** By default this server does not federate. */
  readonly federation?: RoomFederation | undefined;
  /** By default every alias and every publication is allowed. */
  readonly directoryRules?: DirectoryRules;
  /** By default no alias is reserved. */
  readonly aliasReservations?: AliasReservations | undefined;
  /** By default all invites are allowed. */
  readonly invitePolicy?: InvitePolicy;
  /** By default every user may leave every room. */
  readonly leaveCheck?: LeaveCheck | undefined;
  /** By default events of local users are not checked. */
  readonly eventChecks?: OpenEventChecks;
  /** By default events of remote users are checked by the rules of the specification only. */
  readonly receivedEventChecks?: ReceivedEventChecks | undefined;
  /** An index of events, written in the database transactions that store them; by default nothing is indexed. */
  readonly eventIndex?: EventIndex;
  /** By default events have no relations. */
  readonly relations?: OpenRelations;
  /** Adds fields to the `unsigned` of events; by default nothing is added. */
  readonly eventAdditions?: EventAdditions | undefined;
  /** By default no user ignores other users. */
  readonly ignored?: IgnoredUserLists;
  /** By default no user is erased. */
  readonly erased?: Erasures;
}

/** What rooms request from other servers. */
export interface RoomFederation {
  /** By default this server requests no events from other servers. */
  readonly otherServers?: OtherServers | undefined;
  /** By default only local aliases are resolved. */
  readonly remoteAliases?: RemoteAliases | undefined;
  /** Absent: local users cannot join, knock on, leave or invite through other servers. */
  readonly openRemoteMemberships?: OpenRemoteMemberships | undefined;
}

/** Opens the services of rooms. `Rooms.start` resumes the processing of received PDUs that were pending at the last stop. */
export async function openRooms(
  deps: RoomsDeps,
  options: RoomsOptions,
  extensions: RoomExtensions = {},
): Promise<Rooms> {
  const { database, clock, randomness } = deps;
  const { serverName } = deps.signer;
  const { federation, directoryRules: rules = noDirectoryRules } = extensions;
  const others = federation?.otherServers ?? noOtherServers;
  const engine = await RoomWriter.open({
    ...deps,
    ...extensions,
    options,
    policyServerClient: others.policies,
  });
  const aliases = new RoomAliases({
    database,
    engine,
    serverName,
    options,
    rules,
    remote: federation?.remoteAliases,
    reservations: extensions.aliasReservations,
  });
  const published = new PublishedRooms(database, aliases, rules);
  const blocked = await BlockedRooms.open(database);
  const throttle = new Throttle(deps.limits);
  const clientEvents = new ClientEvents(engine, clock, extensions.relations, extensions.eventAdditions);
  const serverAcls = new ServerAcls(engine.events, deps.caches);
  const incoming = await openIncoming(deps, extensions, engine, serverAcls);
  const completion = new StateCompletion({
    engine,
    serverAcls,
    incoming,
    health: others.health,
    serverName,
    clock,
    log: deps.log ?? silentLogger,
  });
  const memberships = openMemberships(deps, options, extensions, {
    engine,
    throttle,
    blocked,
    incoming,
    completion,
  });
  const changeDeps = { engine, memberships, aliases, published, throttle, serverName, randomness };
  return {
    engine,
    aliases,
    published,
    blocked,
    memberships,
    throttle,
    creation: new RoomCreation({ ...changeDeps, options }),
    upgrades: new RoomUpgrade({ ...changeDeps, signer: deps.signer, clock }),
    sending: new Sending({
      engine,
      relations: clientEvents.relations,
      memberships,
      stateChecks: new StateChecks({ engine, aliases, serverName }),
      throttle,
      randomness,
    }),
    historyReader: new HistoryReader(engine, clientEvents, incoming),
    eventByTime: new EventByTime(engine, incoming),
    stateReader: new StateReader({ engine, clientEvents, completion, caches: deps.caches, clock }),
    clientEvents,
    serverAcls,
    incoming,
    completion,
    async start() {
      incoming.start();
      await completion.start();
    },
    async stop() {
      const completed = completion.close();
      await incoming.close();
      await completed;
      await engine.close();
    },
  };
}

/** Opens the service that changes memberships. */
function openMemberships(
  deps: RoomsDeps,
  options: RoomsOptions,
  { invitePolicy = allowAllInvites, leaveCheck, federation }: RoomExtensions,
  {
    incoming,
    completion,
    ...services
  }: Pick<Rooms, 'engine' | 'throttle' | 'blocked' | 'incoming' | 'completion'>,
): Memberships {
  const { serverName } = deps.signer;
  return new Memberships({
    ...deps,
    ...services,
    contents: new MemberContents({
      profiles: deps.profiles,
      serverName,
      allowPerRoomProfiles: options.allow_per_room_profiles,
    }),
    options,
    invitePolicy,
    leaveCheck,
    serverName,
    remote: federation?.openRemoteMemberships?.({ engine: services.engine, incoming, completion }),
    stateComplete: (roomId) => completion.whenComplete(roomId, { timeout: membersTimeout }),
  });
}

/** Opens the processing of events from other servers. */
function openIncoming(
  deps: RoomsDeps,
  { federation, receivedEventChecks }: RoomExtensions,
  engine: RoomWriter,
  serverAcls: ServerAcls,
): Promise<Incoming> {
  const { database, clock } = deps;
  const { serverName } = deps.signer;
  const others = federation?.otherServers ?? noOtherServers;
  return Incoming.open({
    database,
    caches: deps.caches,
    clock,
    log: deps.log ?? silentLogger,
    serverName,
    heads: engine.heads,
    placement: engine.placement,
    history: {
      eventsByNid: (nids) => engine.events.getMany(nids),
      expiredBefore: (head) => engine.retention.expiredBefore(head),
      wasJoined: (head, stored) => new ServerView(engine, head, serverName).wasJoined([stored]),
    },
    policies: engine.policies,
    serverAcls,
    others,
    outOfBand: new RescindedInvites({
      engine,
      serverName,
      strippedState: (roomId, userId) => storedStrippedState(database, roomId, userId),
      checks:
        others.memberships &&
        deps.jobs &&
        new InviteChecks({ peers: others.memberships, engine, database, jobs: deps.jobs, clock, serverName }),
    }),
    metrics: deps.metrics,
    receivedEventChecks,
  });
}
