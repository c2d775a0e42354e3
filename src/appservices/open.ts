import type { AppserviceRegistry } from '../appservice-registry/index.ts';
import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Route } from '../kernel/http/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import type { RateLimit, RateLimiter } from '../kernel/rate-limits/index.ts';
import { forgetCursor, type StreamReader } from '../kernel/streams/index.ts';
import type { RoomReader } from '../room-engine/index.ts';
import { EphemeralData, type EphemeralDataDeps } from './ephemeral/ephemeral-data.ts';
import { RoomInterest } from './interest/room-interest.ts';
import { UserInterest } from './interest/user-interest.ts';
import { Networks } from './networks/networks.ts';
import { searchRate, thirdPartyNetworkRoutes } from './networks/routes.ts';
import { bufferFacts, type FactSources } from './outbox/buffer-facts.ts';
import { FanOut } from './outbox/fan-out.ts';
import type { StoredFactsDeps } from './outbox/stored-facts.ts';
import type { ServiceRequests } from './requests/open.ts';
import { pingRoute } from './requests/ping-route.ts';
import { AppserviceSender, followerName } from './sending/appservice-sender.ts';
import type { ComposeDeps } from './sending/compose.ts';
import type { ServiceQueueDeps } from './sending/service-queue.ts';

/** The slices whose changes services receive, besides changes of rooms. */
export interface FollowedSlices {
  readonly queues: FactSources['queues'] & StoredFactsDeps['queues'] & ServiceQueueDeps['queues'];
  readonly devices: FactSources['devices'] & StoredFactsDeps['devices'];
  readonly keyChanges: FactSources['keyChanges'];
  readonly typing: EphemeralDataDeps['typing'];
  readonly receipts: EphemeralDataDeps['receipts'];
  readonly presence: EphemeralDataDeps['presence'];
}

/** The services of other slices that provide the data of transactions. */
export type TransactionParts = Pick<ComposeDeps, 'clientEvents' | 'keyCounts' | 'prejoinStateKeys'>;

export interface AppservicesDeps {
  readonly registry: AppserviceRegistry;
  readonly requests: ServiceRequests;
  readonly serverName: string;
  readonly database: Database;
  readonly streams: StreamReader;
  readonly caches: CacheRegistry;
  readonly clock: Clock;
  readonly log: Logger;
  readonly engine: RoomReader;
  readonly followed: FollowedSlices;
  readonly transactionParts: TransactionParts;
  /** Returns the local aliases of a room. */
  readonly aliasesOf: (roomId: string) => Promise<readonly string[]>;
  /** Makes a limiter of users' actions. */
  readonly userLimiter: (limit: RateLimit) => RateLimiter;
  readonly userExists: (userId: string) => Promise<boolean>;
}

/** The routes that concern services, and what other slices report. */
export interface Appservices {
  readonly routes: readonly Route[];
  /** Absent where no application service is registered. */
  readonly sender: AppserviceSender | undefined;
  /** Must be called after the aliases of a room have changed. */
  aliasesChanged(roomId: string): void;
  /** Must be called after a request of a service. Ends the backoff of the service. */
  endServiceBackoff(serviceId: string): void;
  stop(): Promise<void>;
}

/** Opens the routes that concern services, and starts to send transactions to services. */
export async function openAppservices(deps: AppservicesDeps): Promise<Appservices> {
  const { registry, requests, clock, log } = deps;
  const { services } = registry;
  const routes = (onAnswer: (serviceId: string) => void) => [
    ...thirdPartyNetworkRoutes(
      new Networks({ services, client: requests.client, clock, log }),
      deps.userLimiter(searchRate),
    ),
    pingRoute({ registry, client: requests.client, clock, onAnswer }),
  ];
  if (registry.isEmpty) {
    // A service that is registered later receives only the later events and other changes.
    await forgetCursor(deps.database, followerName);
    const doNothing = () => undefined;
    return {
      routes: routes(doNothing),
      sender: undefined,
      aliasesChanged: doNothing,
      endServiceBackoff: doNothing,
      stop: async () => {},
    };
  }
  const { sender, rooms } = openSending(deps);
  await sender.start();
  const endServiceBackoff = (serviceId: string) => sender.retryNow(serviceId);
  return {
    routes: routes(endServiceBackoff),
    sender,
    aliasesChanged: (roomId) => rooms.forget(roomId),
    endServiceBackoff,
    stop: () => sender.stop(),
  };
}

/** Opens everything that sends transactions, without starting it. */
function openSending(deps: AppservicesDeps): { sender: AppserviceSender; rooms: RoomInterest } {
  const { registry, requests, engine, caches, serverName, streams, userExists, log, followed } = deps;
  const { services } = registry;
  const tracksDeviceLists = services.some(({ registration }) => registration.receivesDeviceChanges);
  const users = new UserInterest(services, serverName, caches);
  const rooms: RoomInterest = new RoomInterest({
    ...deps,
    services,
    users,
    heads: engine.heads,
    membersBeforeUnhandledFacts: (roomId) => fanOut.membersBeforeUnhandledFacts(roomId),
  });
  const ephemeral = new EphemeralData({
    ...deps,
    ...followed,
    services,
    rooms,
    users,
    caughtUp: () => sender.caughtUpSoon(),
    onData: (servicesToWake) => sender.wake(servicesToWake),
  });
  /** Asks the service about a user without an account, so that it can create the user. */
  const onMember = (userId: string) =>
    void userExists(userId)
      .then((exists) => exists || requests.queries.userExists(userId))
      .catch((error: unknown) =>
        log.error({ err: error, userId }, 'A user of an application service could not be looked up'),
      );
  const fanOut: FanOut = new FanOut({
    ...deps,
    ...followed,
    services,
    users,
    rooms,
    buffer: bufferFacts({ engine, ...followed }, streams, users, tracksDeviceLists),
    userRooms: engine.userRooms,
    heads: engine.heads,
    onMember,
    onEntries: (servicesToWake) => sender.wake(servicesToWake),
  });
  const sender = new AppserviceSender(
    {
      ...deps,
      ...deps.transactionParts,
      ...followed,
      client: requests.client,
      takeEphemeral: (serviceId) => ephemeral.take(serviceId),
      rooms,
    },
    fanOut,
  );
  return { sender, rooms };
}
