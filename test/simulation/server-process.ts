import type { Federation } from '../../src/composition/federation.ts';
import { otherServers } from '../../src/composition/federation-rooms.ts';
import { exchangeEdus } from '../../src/composition/federation-traffic.ts';
import { openHandshakes } from '../../src/composition/handshakes.ts';
import { type Kernel, openKernel } from '../../src/composition/kernel.ts';
import type { People } from '../../src/composition/people.ts';
import { startRooms } from '../../src/composition/rooms.ts';
import { Shutdown } from '../../src/composition/shutdown.ts';
import { loadSigningKeys } from '../../src/composition/signing-key.ts';
import type { HearthConfiguration } from '../../src/configuration.ts';
import {
  EduHandlers,
  EduOutbox,
  FederationSender,
  historyRoutes,
  keyRoutes,
  RoomAccess,
  registerOutboxUpkeep,
  stateRoutes,
  Transactions,
  transactionRoutes,
} from '../../src/federation/index.ts';
import { openFederationClient, TransactionsApi } from '../../src/federation-client/index.ts';
import type { Clock } from '../../src/kernel/clock.ts';
import { createRouter } from '../../src/kernel/http/routing/router.ts';
import { createLogger, silentLogger } from '../../src/kernel/observability/index.ts';
import type { Resolver } from '../../src/kernel/outbound/index.ts';
import { isServerName } from '../../src/protocol/index.ts';
import { RelationIndex } from '../../src/relations/index.ts';
import { openServing } from '../../src/room-federation/index.ts';
import type { Rooms } from '../../src/rooms/index.ts';
import { type Besides, openBesides } from './besides.ts';
import { answerHere, type LocalAnswer, type LocalRequest } from './local-http.ts';
import type { Client, Host, Network } from './network.ts';
import type { Disk } from './one-thread.ts';
import type { Dice } from './random.ts';
import type { Scheduler } from './scheduler.ts';
import type { Trace } from './trace.ts';

export interface ServerSurroundings {
  readonly scheduler: Scheduler;
  readonly network: Network;
  readonly trace: Trace;
  /** A database whose schema is up to date. */
  readonly template: string;
  readonly folder: string;
  /** Whether servers ask for rooms with all members when they join. */
  readonly joinsWhole: boolean;
}

/** One run of a server, from its start to its end or crash. */
export interface Run {
  readonly kernel: Kernel;
  readonly rooms: Rooms;
  readonly sender: FederationSender;
  readonly besides: Besides;
  readonly isAlive: boolean;
  /** Resolves with the crash. */
  readonly crashed: Promise<void>;
}

const never = new Promise<never>(() => undefined);

/** Everybody with an id of the server is a user of it; nobody has a profile, or settings. */
const people = {
  accounts: {
    accounts: {
      userExists: async () => true,
      isAdmin: async () => false,
      getUser: async () => undefined,
    },
  },
  profiles: { read: async () => ({}) },
  upkeep: { register: () => undefined },
  autoJoin: { register: () => undefined },
} as unknown as People;

/** There are no name servers: a server is where its name says. */
const resolver: Resolver = { addresses: async () => [], services: async () => [] };

/** A process: once it has ended, nothing that goes on in its memory is seen by anybody. */
export class ServerProcess implements Disk, Client, Host {
  readonly name: string;
  readonly shutdown: Shutdown;
  readonly crashed: Promise<void>;
  readonly #surroundings: ServerSurroundings;
  readonly #dice: Dice;
  readonly #temper: { readonly skew: number; readonly slowestDisk: number };
  readonly #end: () => void;
  #isAlive = true;
  #stepsLeft = Number.POSITIVE_INFINITY;
  #listener: Parameters<typeof answerHere>[0] | undefined;

  constructor(
    name: string,
    surroundings: ServerSurroundings,
    dice: Dice,
    temper: { readonly skew: number; readonly slowestDisk: number },
  ) {
    this.name = name;
    this.#surroundings = surroundings;
    this.#dice = dice;
    this.#temper = temper;
    this.shutdown = new Shutdown(silentLogger);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.crashed = promise;
    this.#end = resolve;
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  delay(): number {
    return this.#dice.skewed(this.#temper.slowestDisk);
  }

  step(): boolean {
    if (!this.#isAlive) return false;
    if (this.#stepsLeft-- > 0) return true;
    this.#surroundings.trace.note(this.name, 'CRASH');
    this.end();
    return false;
  }

  crashAfter(steps: number): void {
    this.#stepsLeft = steps;
    if (steps === 0) this.step();
  }

  end(): void {
    this.#isAlive = false;
    this.#surroundings.network.leave(this.name, this);
    this.#end();
  }

  async answer(request: LocalRequest): Promise<LocalAnswer | undefined> {
    const listener = this.#listener;
    if (!listener || !this.#isAlive) return undefined;
    const answer = await Promise.race([answerHere(listener, request), this.crashed]);
    return answer && this.step() ? answer : undefined;
  }

  async open(
    configuration: HearthConfiguration,
    path: string,
    logLine: (line: string) => void,
  ): Promise<Run> {
    const { network } = this.#surroundings;
    const { shutdown } = this;
    const log = createLogger({ level: 'warn', destination: { write: logLine } });
    const kernel = await openKernel(
      {
        configuration,
        clock: this.#clock(),
        randomness: this.#dice,
        log,
        namedLog: () => log,
        resolver,
        databaseOptions: { kind: 'sqlite', path, flush: 'never' },
      },
      shutdown,
    );
    const federation = await openFederation(kernel, network, this);
    const relationIndex = new RelationIndex(kernel.database, kernel.serverName);
    const rooms = await startRooms(
      kernel,
      people,
      relationIndex,
      shutdown,
      undefined,
      otherServers(federation),
    );
    const besides = await openBesides(kernel, rooms, federation, people, shutdown);
    const redemption = { invite: () => Promise.reject(new Error('there are no third parties')) };
    const handshakes = await openHandshakes(
      kernel,
      this.#surroundings.joinsWhole ? joiningWhole(federation) : federation,
      people,
      rooms,
      { redemption: redemption as never },
    );
    const { eduHandlers } = federation;
    const sender = new FederationSender({
      ...kernel,
      ...federation,
      engine: rooms.engine,
      api: new TransactionsApi(federation.requests),
    });
    exchangeEdus({ kernel, federation, rooms, conversations: besides }, sender, shutdown);
    const transactions = new Transactions({ ...kernel, incoming: rooms.incoming, eduHandlers });
    transactions.registerUpkeep(kernel.jobs);
    registerOutboxUpkeep(kernel.jobs, kernel);
    shutdown.add('federation sender', () => sender.stop());
    await sender.start();
    shutdown.add('jobs', () => kernel.jobs.stop());
    await kernel.jobs.start();
    rooms.incoming.start();
    await rooms.completion.start();
    const access = new RoomAccess({ ...rooms, serverName: kernel.serverName });
    const { history, state } = openServing(rooms.engine, kernel.database);
    const router = await createRouter(
      [
        ...federation.routes,
        ...handshakes,
        ...transactionRoutes(transactions),
        ...historyRoutes({ ...kernel, access, history }),
        ...stateRoutes({ access, state, history }),
        ...besides.routes,
      ],
      [{ names: ['federation'], compress: false }],
      { log, clock: kernel.clock, forwarded: false, requestIdHeader: undefined, watched: new Set() },
      {
        authenticator: { authenticate: () => Promise.reject(new Error('nobody logs in')) },
        serverAuthenticator: federation.serverAuthenticator,
        serverAdmission: undefined,
        monotonic: () => kernel.clock.monotonic(),
        observe: () => undefined,
      },
    );
    shutdown.add('router', () => {
      network.leave(this.name, this);
      return router.close();
    });
    this.#listener = router.listener;
    if (this.#isAlive) network.listen(this.name, this);
    const process = this;
    return {
      kernel,
      rooms,
      sender,
      besides,
      crashed: this.crashed,
      get isAlive() {
        return process.isAlive;
      },
    };
  }

  #clock(): Clock {
    const { scheduler } = this.#surroundings;
    const begun = scheduler.now;
    return {
      now: () => Math.floor(scheduler.now) + this.#temper.skew,
      monotonic: () => scheduler.now - begun,
      setTimer: (delay, callback) =>
        scheduler.after(delay, () => {
          if (this.#isAlive) callback();
        }),
    };
  }
}

/** What `startFederation` opens, with the simulated network in place of the real one. */
async function openFederation(kernel: Kernel, network: Network, client: Client): Promise<Federation> {
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
  const isDestination = (name: string) => name !== serverName && isServerName(name);
  return {
    ...slice,
    http,
    isDestination,
    outbox: await EduOutbox.open({ ...kernel, isDestination }),
    eduHandlers: new EduHandlers(kernel.log),
    routes: keyRoutes({ ...kernel, ...slice, notaryKeys: signingKeys }),
  };
}

/** Asks for all members where it would do without. */
function joiningWhole(federation: Federation): Federation {
  const { requests } = federation;
  const request: typeof requests.request = ({ query, ...rest }) =>
    requests.request({ ...rest, ...(query && !('omit_members' in query) && { query }) });
  const requestPair: typeof requests.requestPair = (one) => requests.requestPair(one);
  return { ...federation, requests: { request, requestPair } as typeof requests };
}

/** Waits for what a process does, in vain when it crashes. */
export const unlessCrashed = <T>(run: Run, work: Promise<T>): Promise<T | undefined> =>
  Promise.race([work.then((value) => (run.isAlive ? value : never)), run.crashed.then(() => undefined)]);
