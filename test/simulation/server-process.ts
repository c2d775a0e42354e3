import type { RequestListener } from 'node:http';
import type { Federation } from '../../src/composition/federation.ts';
import { otherServers } from '../../src/composition/federation-rooms.ts';
import { sendEdus } from '../../src/composition/federation-traffic.ts';
import { handshakeRoutes, remoteMemberships } from '../../src/composition/handshakes.ts';
import { type Kernel, openKernel } from '../../src/composition/kernel.ts';
import { OpenedSlices } from '../../src/composition/opened-slices.ts';
import { startRooms } from '../../src/composition/rooms.ts';
import { Shutdown } from '../../src/composition/shutdown.ts';
import { loadSigningKeys } from '../../src/composition/signing-key.ts';
import type { Users } from '../../src/composition/users.ts';
import type { HearthConfiguration } from '../../src/configuration.ts';
import {
  EduHandlers,
  EduOutbox,
  ephemeralEduHandlers,
  FederationSender,
  historyRoutes,
  keyRoutes,
  RoomAccess,
  stateRoutes,
  Transactions,
  transactionRoutes,
  trimOutboxHourly,
} from '../../src/federation/index.ts';
import { openFederationClient, TransactionsApi } from '../../src/federation-client/index.ts';
import { BriefMap } from '../../src/kernel/brief-map.ts';
import type { Clock } from '../../src/kernel/clock.ts';
import { createRouter } from '../../src/kernel/http/endpoints/router.ts';
import type { Route } from '../../src/kernel/http/index.ts';
import { BodyReader } from '../../src/kernel/http/requests/body-reader.ts';
import { createLogger, silentLogger } from '../../src/kernel/observability/index.ts';
import type { Resolver } from '../../src/kernel/outbound/index.ts';
import { UserSlots } from '../../src/kernel/rate-limits/index.ts';
import { isServerName } from '../../src/protocol/index.ts';
import { RelationIndex } from '../../src/relations/index.ts';
import { openServing } from '../../src/room-federation/index.ts';
import type { Rooms } from '../../src/rooms/index.ts';
import { type EduServices, openEduServices } from './edu-services.ts';
import { answerLocally, type LocalAnswer, type LocalRequest } from './local-http.ts';
import type { Client, Host, Network } from './network.ts';
import type { Dice } from './random.ts';
import type { Scheduler } from './scheduler.ts';
import type { Disk } from './simulated-platform.ts';
import type { Trace } from './trace.ts';

export interface ServerEnvironment {
  readonly scheduler: Scheduler;
  readonly network: Network;
  readonly trace: Trace;
  /** Path of a database with the current schema. Each server copies it. */
  readonly template: string;
  readonly folder: string;
  /** Whether servers request the full room state when they join, instead of `omit_members`. */
  readonly joinsWithAllMembers: boolean;
}

/** How a simulated machine differs from an ideal one. */
export interface Traits {
  /** Its clock is ahead of simulated time by this many milliseconds. */
  readonly skew: number;
  /** Maximum time until an operation on its disk runs, in simulated milliseconds. */
  readonly maxDiskDelay: number;
}

/** One run of a server, from its start to its stop or crash. */
export interface Run {
  readonly kernel: Kernel;
  readonly rooms: Rooms;
  readonly sender: FederationSender;
  readonly services: EduServices;
  readonly isAlive: boolean;
  /** Resolves when the process has crashed or stopped. */
  readonly ended: Promise<void>;
}

const never = new Promise<never>(() => undefined);

/** Every id of the server belongs to an existing user; users have no profiles and no settings. */
const users = {
  accounts: {
    accounts: {
      userExists: async () => true,
      isAdmin: async () => false,
      getUser: async () => undefined,
    },
  },
  profiles: { read: async () => ({}) },
} as unknown as Users;

/** DNS is not used: a server name is its address. */
const resolver: Resolver = { addresses: async () => [], services: async () => [] };

/** A simulated process: once it has ended, no effect of its code is visible outside. */
export class ServerProcess implements Disk, Client, Host {
  readonly name: string;
  readonly shutdown: Shutdown;
  readonly ended: Promise<void>;
  readonly #environment: ServerEnvironment;
  readonly #dice: Dice;
  readonly #traits: Traits;
  readonly #end: () => void;
  #isAlive = true;
  #stepsLeft = Number.POSITIVE_INFINITY;
  #listener: RequestListener | undefined;

  constructor(name: string, environment: ServerEnvironment, dice: Dice, traits: Traits) {
    this.name = name;
    this.#environment = environment;
    this.#dice = dice;
    this.#traits = traits;
    this.shutdown = new Shutdown(silentLogger);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    this.#end = resolve;
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** Returns the simulated milliseconds until an operation on the disk runs. */
  delay(): number {
    return this.#dice.skewed(this.#traits.maxDiskDelay);
  }

  /**
   * Counts a step (a write or a request) and ends the process at the step that `crashAfter` has chosen.
   * @returns whether the process still runs
   */
  step(): boolean {
    if (!this.#isAlive) return false;
    if (this.#stepsLeft-- > 0) return true;
    this.#environment.trace.note(this.name, 'CRASH');
    this.end();
    return false;
  }

  /** Lets the process crash after a number of further steps. */
  crashAfter(steps: number): void {
    this.#stepsLeft = steps;
    if (steps === 0) this.step();
  }

  end(): void {
    this.#isAlive = false;
    this.#environment.network.leave(this.name, this);
    this.#end();
  }

  async answer(request: LocalRequest): Promise<LocalAnswer | undefined> {
    const listener = this.#listener;
    if (!listener || !this.#isAlive) return undefined;
    const answer = await Promise.race([answerLocally(listener, request), this.ended]);
    return answer && this.step() ? answer : undefined;
  }

  async open(
    configuration: HearthConfiguration,
    path: string,
    logLine: (line: string) => void,
  ): Promise<Run> {
    const { network } = this.#environment;
    const { shutdown } = this;
    const kernel = await this.#openKernel(configuration, path, logLine);
    const opened = new OpenedSlices(shutdown);
    const federation = await openFederation(kernel, network, this, opened);
    const relationIndex = new RelationIndex(kernel.database, kernel.serverName, kernel.caches);
    const rooms = await startRooms(kernel, users, relationIndex, opened, {
      federation: {
        otherServers: otherServers(federation),
        openRemoteMemberships: await remoteMemberships(
          kernel,
          this.#environment.joinsWithAllMembers ? requestingAllMembers(federation) : federation,
          users,
        ),
      },
    });
    const services = await openEduServices(kernel, rooms, federation, users, opened);
    const redemption = { invite: () => Promise.reject(new Error('there are no third-party invites')) };
    const handshakes = await handshakeRoutes(kernel, rooms, { redemption: redemption as never });
    const sender = new FederationSender({
      ...kernel,
      ...federation,
      engine: rooms.engine,
      api: new TransactionsApi(federation.requests),
    });
    const deps = { kernel, federation, rooms, conversations: services };
    sendEdus(deps, sender, opened);
    const eduHandlers = new EduHandlers(kernel.log, [
      ...opened.eduHandlers,
      ephemeralEduHandlers({ ...kernel, ...rooms, ...services }),
    ]);
    const transactions = new Transactions({ ...kernel, incoming: rooms.incoming, eduHandlers });
    trimOutboxHourly(kernel.jobs, kernel);
    shutdown.add('federation sender', () => sender.stop());
    await sender.start();
    opened.add('jobs', kernel.jobs);
    await opened.start();
    const listener = routerOf(kernel, federation, rooms, [
      ...handshakes,
      ...transactionRoutes(transactions),
      ...opened.routes,
    ]);
    shutdown.add('router', () => network.leave(this.name, this));
    this.#listener = listener;
    if (this.#isAlive) network.listen(this.name, this);
    const process = this;
    return {
      kernel,
      rooms,
      sender,
      services,
      ended: this.ended,
      get isAlive() {
        return process.isAlive;
      },
    };
  }

  #openKernel(
    configuration: HearthConfiguration,
    path: string,
    logLine: (line: string) => void,
  ): Promise<Kernel> {
    const log = createLogger({ level: 'warn', destination: { write: logLine } });
    return openKernel(
      {
        configuration,
        clock: this.#clock(),
        randomness: this.#dice,
        log,
        namedLog: () => log,
        resolver,
        databaseOptions: { kind: 'sqlite', path, flush: 'never' },
        sharesDatabase: true,
      },
      this.shutdown,
    );
  }

  #clock(): Clock {
    const { scheduler } = this.#environment;
    const begun = scheduler.now;
    return {
      now: () => Math.floor(scheduler.now) + this.#traits.skew,
      monotonic: () => scheduler.now - begun,
      setTimer: (delay, callback) =>
        scheduler.after(delay, () => {
          if (this.#isAlive) callback();
        }),
    };
  }
}

/**
 * Returns the listener for requests of other servers.
 * @param routes further routes, besides the routes of history and state
 */
function routerOf(
  kernel: Kernel,
  federation: Federation,
  rooms: Rooms,
  routes: readonly Route[],
): RequestListener {
  const access = new RoomAccess({ ...rooms, serverName: kernel.serverName });
  const { history, state } = openServing(rooms.engine, kernel.database);
  return createRouter(
    [...routes, ...historyRoutes({ ...kernel, access, history }), ...stateRoutes({ access, state, history })],
    { resources: [{ names: ['federation'], compress: false }] },
    {
      log: kernel.log,
      clock: kernel.clock,
      forwarded: false,
      requestIdHeader: undefined,
      watched: new BriefMap(),
    },
    {
      bodies: new BodyReader(kernel.clock),
      slots: new UserSlots(),
      authenticator: {
        authenticate: () => Promise.reject(new Error('the simulation has no client requests')),
      },
      serverAuthenticator: federation.serverAuthenticator,
      serverAdmission: undefined,
      monotonic: () => kernel.clock.monotonic(),
      observe: () => undefined,
    },
  );
}

/** Like `startFederation`, with the simulated network in place of the real one. */
async function openFederation(
  kernel: Kernel,
  network: Network,
  client: Client,
  opened: OpenedSlices,
): Promise<Federation> {
  const { configuration, serverName } = kernel;
  const http = network.httpFor(client);
  const signingKeys = await loadSigningKeys(kernel);
  const slice = await openFederationClient({
    ...kernel,
    http,
    resolver,
    signingKeys,
    options: configuration.federationClient,
  });
  opened.add('server keys', { routes: keyRoutes({ ...kernel, ...slice, notaryKeys: signingKeys }) });
  const isDestination = (name: string) => name !== serverName && isServerName(name);
  return {
    ...slice,
    http,
    isDestination,
    outbox: await EduOutbox.open({ ...kernel, isDestination }),
  };
}

/** Removes `omit_members` from requests, so that joins return the full room state. */
function requestingAllMembers(federation: Federation): Federation {
  const { requests } = federation;
  const request: typeof requests.request = ({ query, ...rest }) =>
    requests.request({ ...rest, ...(query && !('omit_members' in query) && { query }) });
  const requestPair: typeof requests.requestPair = (one) => requests.requestPair(one);
  return { ...federation, requests: { request, requestPair } as typeof requests };
}

/** Waits for the work of a process. @returns `undefined` when the process ends first */
export const unlessEnded = <T>(run: Run, work: Promise<T>): Promise<T | undefined> =>
  Promise.race([work.then((value) => (run.isAlive ? value : never)), run.ended.then(() => undefined)]);
