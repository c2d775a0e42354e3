import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import { KeyedMutex } from '../kernel/keyed-mutex.ts';
import type { Logger, Metrics } from '../kernel/observability/index.ts';
import { type JsonValue, notFound, type RoomVersion } from '../protocol/index.ts';
import type {
  HeadReader,
  Placement,
  PolicyServers,
  ReceivedEventChecks,
  RoomHead,
  ServerAcls,
  StoredEvent,
  SuppliedState,
  VerifiedEvent,
} from '../room-engine/index.ts';
import { InvalidEvents } from './checking/invalid-events.ts';
import { KnownEvents } from './checking/known-events.ts';
import { MissingKeys } from './checking/missing-keys.ts';
import { ResponseVerifier } from './checking/response-verifier.ts';
import { type Refusal, Verifier } from './checking/verifier.ts';
import { EventProcessor } from './event-processor.ts';
import { AuthEventFetcher } from './fetching/auth-event-fetcher.ts';
import { EventFetcher } from './fetching/event-fetcher.ts';
import { GapFiller } from './fetching/gap-filler.ts';
import { StateFetcher, type StateOptions } from './fetching/state-fetcher.ts';
import { incomingMetrics } from './metrics.ts';
import { Backfiller } from './older-history/backfiller.ts';
import { MissedHistory, type MissedHistoryDeps } from './older-history/missed-history.ts';
import { OlderEventFetcher } from './older-history/older-event-fetcher.ts';
import { type TimestampQuery, TimestampToEvent } from './older-history/timestamp-to-event.ts';
import { QueryBackoff } from './querying/query-backoff.ts';
import { maxServersConsidered, RoomServers } from './querying/room-servers.ts';
import { ServerQueries } from './querying/server-queries.ts';
import { FetchFailed } from './querying/server-query.ts';
import type { OtherServers } from './remote-servers.ts';
import { type OutOfBandMemberships, type PduOutcome, PduReceiver } from './staging/pdu-receiver.ts';
import { RoomWorkers } from './staging/room-workers.ts';
import { StagedEventProcessor } from './staging/staged-event-processor.ts';
import { Staging } from './staging/staging.ts';

/** A verified event, or why it failed the checks. */
export type VerificationResult = VerifiedEvent | Refusal;

/** Reads the stored history of rooms. */
export interface StoredHistory extends Pick<MissedHistoryDeps, 'eventsByNid' | 'wasJoined'> {
  /**
   * Returns a time in milliseconds since the epoch: older messages of the room have expired. Absent when messages never
   * expire.
   */
  readonly expiredBefore?: ((head: RoomHead) => number | Promise<number>) | undefined;
}

export interface IncomingDeps {
  readonly database: Database;
  readonly caches: CacheRegistry;
  readonly clock: Clock;
  readonly log: Logger;
  readonly serverName: string;
  readonly heads: HeadReader;
  readonly placement: Placement;
  readonly policies: PolicyServers;
  readonly serverAcls: ServerAcls;
  /** Requests to other servers, the keys of these servers, and whether they can be reached. */
  readonly others: OtherServers;
  readonly outOfBand: OutOfBandMemberships;
  readonly history: StoredHistory;
  readonly metrics?: Metrics | undefined;
  readonly receivedEventChecks?: ReceivedEventChecks | undefined;
}

/**
 * Events from remote servers. A received event goes `PduReceiver` → `Staging` (on disk) → `RoomWorkers` →
 * `StagedEventProcessor` → `EventProcessor` → `Placement` of the room engine: each of them calls the next.
 */
export class Incoming {
  readonly #deps: IncomingDeps;
  readonly #verifier: Verifier;
  readonly #staging: Staging;
  readonly #backoff: QueryBackoff;
  readonly #queries: ServerQueries;
  readonly #states: StateFetcher;
  readonly #processor: EventProcessor;
  readonly #receiver: PduReceiver;
  readonly #backfiller: Backfiller;
  readonly #missed: MissedHistory;
  readonly #timestamps: TimestampToEvent;
  readonly #workers: RoomWorkers;
  /** Processes one received event of a room at a time, by room id. */
  readonly #mutex = new KeyedMutex();

  private constructor(deps: IncomingDeps, staging: Staging) {
    this.#deps = deps;
    this.#staging = staging;
    const { clock, placement, database } = deps;
    const { events: remote, keys } = deps.others;
    const metrics = incomingMetrics(deps.metrics, () => ({
      count: staging.size,
      oldestAge: clock.now() - (staging.oldestTs ?? clock.now()),
    }));
    const missing = new MissingKeys(clock, deps.caches);
    const verifier = new Verifier({ keys, missing, clock });
    const backoff = new QueryBackoff(clock, deps.caches);
    const servers = new RoomServers({ ...deps, ...deps.others, backoff });
    const queries = new ServerQueries({ ...deps, servers, backoff });
    const invalidEvents = new InvalidEvents(clock, deps.caches);
    const known = new KnownEvents(database);
    const responses = new ResponseVerifier({ verifier, invalidEvents, known });
    const fetcher = new EventFetcher({ remote, responses, invalidEvents });
    const auth = new AuthEventFetcher({ remote, responses, fetcher, known, placement });
    const states = new StateFetcher({ remote, responses, fetcher, invalidEvents, known, auth, placement });
    const fetching = { ...deps, ...deps.history, remote, responses, fetcher, auth, states, servers, queries };
    const older = new OlderEventFetcher(fetching);
    const missed = new MissedHistory({ ...fetching, older });
    const shared = { ...fetching, staging, backoff, metrics };
    const processor = new EventProcessor({ ...shared, gaps: new GapFiller(shared), missed });
    const events = new StagedEventProcessor({ ...shared, processor, mutex: this.#mutex });
    const workers = new RoomWorkers({ ...shared, events });
    this.#verifier = verifier;
    this.#backoff = backoff;
    this.#queries = queries;
    this.#states = states;
    this.#missed = missed;
    this.#processor = processor;
    this.#workers = workers;
    this.#receiver = new PduReceiver({ ...shared, verifier, workers });
    this.#backfiller = new Backfiller({ ...fetching, older });
    this.#timestamps = new TimestampToEvent(fetching);
  }

  /** Loads the events that were staged at the last shutdown; `start` processes them. */
  static async open(deps: IncomingDeps): Promise<Incoming> {
    return new Incoming(deps, await Staging.open(deps));
  }

  /**
   * Checks format, size, signatures and hash, with the keys of all events fetched together. An event with a wrong hash
   * is returned redacted. Results are in the order of `jsons`. Does not throw for invalid events.
   * Source: server-server API, "Checks performed on receipt of a PDU", checks 1 to 3.
   */
  verify(version: RoomVersion, jsons: readonly JsonValue[]): Promise<readonly VerificationResult[]> {
    return this.#verifier.verify(version, jsons);
  }

  /**
   * Receives the PDUs of one transaction. When this resolves, the PDUs that passed the first checks are staged on disk;
   * the workers of the rooms place them later. Events are accepted only in rooms that this server is in, and only from
   * servers that the room's server ACL allows (`PduReceiver`). In other rooms, an event can only end an invite or a
   * knock.
   * Source: server-server API, "Checks performed on receipt of a PDU":
   * 1. The event is valid in its room version, otherwise it is dropped: `Verifier.read`.
   * 2. It passes signature checks, otherwise it is dropped: `Verifier.check`.
   * 3. It passes hash checks, otherwise it is redacted: `Verifier.check`.
   * 4. Its auth events allow it, otherwise it is rejected: `room-engine/placement/events/examine-event.ts`.
   * 5. The state before the event allows it, otherwise it is rejected: the same file.
   * 6. The current state of the room allows it, otherwise it is soft-failed: the same file.
   * 7. The policy server of the room has signed it, otherwise it is soft-failed: the same file.
   * @returns outcomes by event id; events whose ids cannot be determined are absent
   * @throws when no event could be stored, so that the server sends the transaction again
   */
  receive(origin: string, pdus: readonly JsonValue[]): Promise<Record<string, PduOutcome>> {
    return this.#receiver.receive(origin, pdus);
  }

  /**
   * Places one event of a local user that another server has accepted, after fetching the missing events and states
   * that it refers to. When these cannot be fetched, the event is staged, so that it is placed later: the other servers
   * have it.
   * @param origin the server that receives the requests first, even if it is in backoff for this room
   * @throws MatrixError M_NOT_FOUND for an unknown room, and the errors of `Placement.place`; FetchFailed when an event
   * or state that it refers to is missing
   */
  async process(roomId: string, origin: string, event: VerifiedEvent): Promise<StoredEvent> {
    const head = await this.#deps.heads.get(roomId);
    if (!head) throw notFound('Unknown room');
    this.#backoff.recordSuccess(roomId, origin);
    try {
      const options = { maxMissing: 0 };
      return await this.#mutex.run(roomId, () => this.#processor.process(head, origin, event, options));
    } catch (error) {
      const isStaged = this.#staging.has(event.event.eventId);
      if (error instanceof FetchFailed && !isStaged)
        await this.#staging.add(roomId, origin, [event], this.#deps.clock.now());
      throw error;
    } finally {
      // Staged events may wait for this event.
      this.#workers.wake(roomId);
    }
  }

  /**
   * Fetches the whole state before a stored event of a room, even where parts of it are stored, and stores all of its
   * events.
   * @param first servers that receive the requests before other servers
   * @throws MatrixError M_NOT_FOUND for an unknown room or event; FetchFailed when no server provides enough of the state
   */
  async stateBefore(
    roomId: string,
    first: readonly string[],
    eventId: string,
    options?: StateOptions,
  ): Promise<SuppliedState> {
    const { heads, placement } = this.#deps;
    const head = await heads.get(roomId);
    const stored = (await placement.find([eventId])).get(eventId);
    if (!head || !stored) throw notFound('Unknown room or event');
    if (options?.ignoreBackoff) {
      for (const server of first.slice(0, maxServersConsidered)) this.#backoff.recordSuccess(roomId, server);
    }
    const prev = [...new Set(stored.event.prevEventIds)];
    return this.#queries.run(head, first, (query) => this.#states.stateBefore(query, eventId, prev, options));
  }

  /** Whether older events of a room could be requested from any server. Reads memory only. */
  canBackfill(head: RoomHead): boolean {
    return this.#backfiller.isPossible(head);
  }

  /**
   * Backfills missing events of the timeline and some events before them. Waits at most ten seconds; events that arrive
   * later are stored.
   * @returns whether older events were placed
   */
  backfill(roomId: string, eventIds: readonly string[], limit: number): Promise<boolean> {
    return this.#backfiller.backfill(roomId, eventIds, limit);
  }

  /**
   * Finds an event on remote servers that is closer to a timestamp than the stored events; `undefined` when no server
   * returns such an event within ten seconds.
   */
  eventByTime(head: RoomHead, wanted: TimestampQuery): Promise<StoredEvent | undefined> {
    return this.#timestamps.find(head, wanted);
  }

  /** Resumes the work that was in progress at the last shutdown. */
  start(): void {
    for (const roomId of this.#staging.rooms) this.#workers.wake(roomId);
    this.#missed.start();
  }

  /** Resolves when no work is in progress; scheduled retries do not count. */
  async settled(): Promise<void> {
    await this.#workers.settled();
    await this.#backfiller.settled();
    await this.#missed.settled();
    await this.#staging.settled();
  }

  /** Stops the work that is in progress; the next `start` resumes it. */
  async close(): Promise<void> {
    this.#queries.close();
    await this.#workers.close();
    await this.#missed.close();
    await this.settled();
  }
}
