import { LimitOverrides } from '../accounts/index.ts';
import { openE2eeReading } from '../e2ee/index.ts';
import { CacheRegistry } from '../kernel/caches/index.ts';
import { type DatabaseOptions, openDatabaseBeside } from '../kernel/database/index.ts';
import { Jobs } from '../kernel/jobs/index.ts';
import { RateLimiter } from '../kernel/rate-limits/index.ts';
import {
  type PublishedFact,
  type PublishedRange,
  ReadOnlyStreams,
  RemoteStreams,
} from '../kernel/streams/index.ts';
import { RelationIndex, Relations } from '../relations/index.ts';
import { openReadingRooms, type ReadingRooms } from '../rooms/index.ts';
import { openToDeviceReading } from '../to-device/index.ts';
import { type Conversations, startConversations } from './conversations.ts';
import {
  databaseOptionsOf,
  type Environment,
  type Kernel,
  serverNameOf,
  stateDatabaseOptionsOf,
} from './kernel.ts';
import { OpenedSlices } from './opened-slices.ts';
import type { Shutdown } from './shutdown.ts';
import { startUsers, type Users } from './users.ts';

/** Delivers the facts of the main process to this process. */
export interface FactBus {
  /** A position of the main process. `subscribe` delivers all facts after it. */
  readonly current: number;
  /** @returns a function that ends the subscription */
  subscribe(listener: (range: PublishedRange) => void): () => void;
  /**
   * Reads facts in `(after, upTo]` that the bus has lost; `undefined` when they cannot be read. Absent when the bus can
   * never read lost facts.
   */
  readMissing?(after: number, upTo: number): Promise<readonly PublishedFact[] | undefined>;
}

/** A reader process: answers syncs from the database of the main process and follows its facts. */
export interface Reader {
  readonly kernel: Kernel;
  readonly users: Users;
  readonly rooms: ReadingRooms;
  readonly conversations: Conversations;
  /** Resolves when all facts that the bus brought before the call have been delivered. */
  caughtUp(): Promise<void>;
}

/**
 * Assembles a reader process, which writes no events, runs no jobs and sends no requests to other servers.
 * @param onLost called when the caches of the reader may be outdated, because facts were lost or another main process
 * has taken over; the caller must then close the reader and open a new one
 */
export async function openReader(
  environment: Environment,
  bus: FactBus,
  shutdown: Shutdown,
  onLost: (error: Error) => void,
): Promise<Reader> {
  const { clock, log } = environment;
  const remote = new RemoteStreams({
    current: bus.current,
    readMissing: bus.readMissing && ((after, upTo) => bus.readMissing!(after, upTo)),
    onLost,
    clock,
    log,
  });
  shutdown.add('streams', () => remote.close());
  // Subscribes before the slices are opened: facts that arrive meanwhile wait until the slices follow them.
  shutdown.add(
    'facts of the main process',
    bus.subscribe((range) => remote.receive(range)),
  );
  const kernel = await openReaderKernel({ ...environment, onDatabaseLost: onLost }, remote, shutdown);
  const opened = new OpenedSlices(shutdown);
  const users = startUsers(kernel, opened);
  const rooms = openRooms(kernel, users);
  opened.add('to-device messages', openToDeviceReading(kernel));
  const { accounts, keyChanges } = users;
  const e2eeDeps = {
    ...kernel,
    log: kernel.namedLog('e2ee'),
    devices: accounts.devices,
    engine: rooms.engine,
    keyChanges,
  };
  opened.add('end-to-end encryption', openE2eeReading(e2eeDeps));
  const conversations = await startConversations(kernel, users, rooms, opened);
  remote.follow(rooms.engine.stream, rooms.engine.removals, ...opened.streams);
  return { kernel, users, rooms, conversations, caughtUp: () => remote.settled() };
}

/**
 * Opens the database and the other parts of the kernel. Runs no migrations, because the main process has run them.
 * Writes need the lease of the main process, and fail when another process has taken the lease.
 */
async function openReaderKernel(
  environment: Environment,
  remote: RemoteStreams,
  shutdown: Shutdown,
): Promise<Kernel> {
  const { configuration, clock, log } = environment;
  const namedLog = environment.namedLog ?? ((name: string) => log.child({ logger: name }));
  const open = async (options: DatabaseOptions, name: string) => {
    const opened = await openDatabaseBeside(options, { log: namedLog('database'), clock }, (error) =>
      environment.onDatabaseLost?.(error),
    );
    shutdown.add(name, () => opened.close());
    return opened;
  };
  const database = await open(databaseOptionsOf(environment), 'database');
  const stateOptions = stateDatabaseOptionsOf(environment);
  const stateDatabase = stateOptions ? await open(stateOptions, 'database of state groups') : database;
  const caches = new CacheRegistry(clock, configuration.caches, undefined);
  shutdown.add('caches', () => caches.close());
  const limitOverrides = await LimitOverrides.open(database, clock);
  return {
    ...environment,
    role: 'reader',
    namedLog,
    serverName: serverNameOf(configuration),
    database,
    stateDatabase,
    streams: new ReadOnlyStreams(remote),
    // These jobs are never started, because the main process runs them.
    jobs: new Jobs({ database, clock, log: namedLog('jobs'), isOnlyProcess: false }),
    caches,
    metrics: undefined,
    limitOverrides,
    limiter: (limit) => new RateLimiter(limit, clock),
    userLimiter: (limit) => new RateLimiter(limit, clock, undefined, (key) => limitOverrides.isExempt(key)),
  };
}

function openRooms(kernel: Kernel, { ignoredUsers: ignored, erasedUsers: erased }: Users): ReadingRooms {
  const index = new RelationIndex(kernel.database, kernel.serverName, kernel.caches);
  return openReadingRooms({
    ...kernel,
    options: kernel.configuration.rooms,
    eventCacheSize: kernel.configuration.caches.event_cache_size,
    ignored,
    erased,
    relations: (engine, clientEvents) => {
      index.followAsReader(engine);
      return new Relations({ engine, clientEvents, index, ignored });
    },
  });
}
