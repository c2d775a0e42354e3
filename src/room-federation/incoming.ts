import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import { KeyedMutex } from '../kernel/keyed-mutex.ts';
import type { Logger, Metrics } from '../kernel/observability/index.ts';
import { type JsonValue, notFound, type RoomVersion, serverOfUser } from '../protocol/index.ts';
import type {
  HeadReader,
  Placement,
  PolicyServers,
  RoomHead,
  ServerAcls,
  StoredEvent,
  VerifiedEvent,
} from '../room-engine/index.ts';
import { AskBackoff } from './asking/ask-backoff.ts';
import { maxServersConsidered, RoomServers } from './asking/room-servers.ts';
import { ServerQueries } from './asking/server-queries.ts';
import { InvalidEvents } from './checking/invalid-events.ts';
import { KnownEvents } from './checking/known-events.ts';
import { ResponseVerifier } from './checking/response-verifier.ts';
import { type Refusal, Verifier } from './checking/verifier.ts';
import { EventProcessor } from './event-processor.ts';
import { AuthEventFetcher } from './fetching/auth-event-fetcher.ts';
import { EventFetcher } from './fetching/event-fetcher.ts';
import { GapFiller } from './fetching/gap-filler.ts';
import { StateFetcher, type StateOptions } from './fetching/state-fetcher.ts';
import { type IncomingMetrics, incomingMetrics } from './metrics.ts';
import { Backfiller } from './older-history/backfiller.ts';
import { MissedHistory, type MissedHistoryDeps } from './older-history/missed-history.ts';
import { OlderEventFetcher } from './older-history/older-event-fetcher.ts';
import { type TimestampQuery, TimestampToEvent } from './older-history/timestamp-to-event.ts';
import type { OtherServers } from './remote-servers.ts';
import { type OutOfBandMemberships, type PduOutcome, PduReceiver } from './staging/pdu-receiver.ts';
import { RoomWorkers } from './staging/room-workers.ts';
import { StagedEventProcessor } from './staging/staged-event-processor.ts';
import { Staging } from './staging/staging.ts';

/** An event that was checked, or why it may not be used. */
export type VerificationResult = VerifiedEvent | Refusal;

export interface IncomingDeps extends Pick<MissedHistoryDeps, 'eventsByNid' | 'wasJoined'> {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly serverName: string;
  readonly heads: HeadReader;
  readonly placement: Placement;
  readonly policies: PolicyServers;
  readonly serverAcls: ServerAcls;
  readonly others: OtherServers;
  readonly outOfBand: OutOfBandMemberships;
  readonly metrics?: Metrics | undefined;
}

/** Events from other servers: checked, completed with what they refer to, and put at their places. */
export class Incoming {
  readonly #deps: IncomingDeps;
  readonly #verifier: Verifier;
  readonly #staging: Staging;
  readonly #backoff: AskBackoff;
  readonly #queries: ServerQueries;
  readonly #states: StateFetcher;
  readonly #processor: EventProcessor;
  readonly #receiving: PduReceiver;
  readonly #backfilling: Backfiller;
  readonly #missed: MissedHistory;
  readonly #byTime: TimestampToEvent;
  readonly #workers: RoomWorkers;
  readonly #mutex = new KeyedMutex();
  readonly #metrics: IncomingMetrics;

  private constructor(deps: IncomingDeps, staging: Staging) {
    this.#deps = deps;
    this.#staging = staging;
    const { clock, placement, database, metrics } = deps;
    const { events: remote, keys } = deps.others;
    this.#metrics = incomingMetrics(metrics, () => ({
      count: staging.size,
      oldestAge: clock.now() - (staging.oldestTs ?? clock.now()),
    }));
    const verifier = new Verifier({ keys, clock });
    const backoff = new AskBackoff(clock);
    const servers = new RoomServers({ ...deps, ...deps.others, backoff });
    const queries = new ServerQueries({ ...deps, servers, backoff });
    const refused = new InvalidEvents(clock);
    const known = new KnownEvents(database);
    const responses = new ResponseVerifier({ verifier, refused, known });
    const fetcher = new EventFetcher({ remote, responses, refused });
    const auth = new AuthEventFetcher({ remote, responses, fetcher, known, placement });
    const states = new StateFetcher({ remote, responses, fetcher, known, auth });
    const shared = { ...deps, remote, responses, fetcher, auth, states, servers, queries, staging, verifier };
    this.#verifier = verifier;
    this.#backoff = backoff;
    this.#queries = queries;
    this.#states = states;
    this.#processor = new EventProcessor({
      ...shared,
      gaps: new GapFiller(shared),
      onPlaced: (stored) => {
        this.#metrics.placed(stored);
        const { roomId, eventId } = stored.event;
        if (staging.arrived(roomId, eventId)) this.#workers.wake(roomId);
      },
    });
    const work = new StagedEventProcessor({
      ...shared,
      backoff,
      processor: this.#processor,
      mutex: this.#mutex,
      metrics: this.#metrics,
      process: (head, origin, event, options) => this.#process(head, origin, event, options),
      wake: (roomId) => this.#workers.wake(roomId),
    });
    this.#workers = new RoomWorkers({
      ...shared,
      begin: (staged, isUnderWay) => work.begin(staged, isUnderWay),
      handle: (staged) => work.handle(staged),
      onWaiting: (staged) => work.noteLacks(staged),
      onDropped: () => this.#metrics.dropped(),
    });
    this.#receiving = new PduReceiver({
      ...shared,
      onRefused: (count) => this.#metrics.refused(count),
      // It may let this server in again, and whoever has sent it may help now. That costs half of the room's time at most.
      onAcl: (roomId, origin) => backoff.recordSuccess(roomId, origin),
      wake: (roomId) => this.#workers.wake(roomId),
    });
    const older = new OlderEventFetcher(shared);
    this.#backfilling = new Backfiller({ ...shared, older });
    this.#missed = new MissedHistory({ ...shared, older });
    this.#byTime = new TimestampToEvent(shared);
  }

  /** Reads which events wait from before. */
  static async open(deps: IncomingDeps): Promise<Incoming> {
    return new Incoming(deps, await Staging.open(deps.database, deps.log));
  }

  /**
   * Checks format, size, signatures and hash; keys are fetched, all together. An event whose hash is wrong comes back
   * redacted. Results are in the order of `jsons`. Never throws for what the events are.
   * Source: server-server API, "Checks performed on receipt of a PDU", checks 1 to 3.
   */
  verify(version: RoomVersion, jsons: readonly JsonValue[]): Promise<readonly VerificationResult[]> {
    return this.#verifier.verify(version, jsons);
  }

  /**
   * Takes the events of one transaction: what passes the checks is on disk when this resolves, and is put at its place
   * later, room by room. By event id; events whose ids can not be told are left out.
   */
  receive(origin: string, pdus: readonly JsonValue[]): Promise<Record<string, PduOutcome>> {
    return this.#receiving.receive(origin, pdus);
  }

  /**
   * Puts one event at its place now, with everything that it refers to and that is not here yet.
   * @param origin whom to ask first, even if it has not helped lately
   * @throws MatrixError M_NOT_FOUND for an unknown room; Unobtainable when what it needs can not be had
   */
  async process(roomId: string, origin: string, event: VerifiedEvent): Promise<StoredEvent> {
    const head = await this.#deps.heads.get(roomId);
    if (!head) throw notFound('Unknown room');
    this.#backoff.recordSuccess(roomId, origin);
    return this.#mutex.run(roomId, () => this.#process(head, origin, event));
  }

  /**
   * The whole state before an event of a room, all of which is stored when this resolves.
   * @param first whom to ask first
   * @returns event ids
   * @throws MatrixError M_NOT_FOUND for an unknown room; Unobtainable when no server gives it
   */
  async stateBefore(
    roomId: string,
    first: readonly string[],
    eventId: string,
    options?: StateOptions,
  ): Promise<readonly string[]> {
    const head = await this.#deps.heads.get(roomId);
    if (!head) throw notFound('Unknown room');
    if (options?.ignoreBackoff) {
      for (const server of first.slice(0, maxServersConsidered)) this.#backoff.recordSuccess(roomId, server);
    }
    return this.#queries.run(head, first, (query) => this.#states.stateBefore(query, eventId, options));
  }

  /** Whether somebody could be asked for older events of a room: a look into memory. */
  canBackfill(head: RoomHead): boolean {
    return this.#backfilling.isPossible(head);
  }

  /**
   * Asks other servers for events that the timeline names and does not have, and for some that come before them. Takes
   * ten seconds at the most; what arrives later is kept.
   * @returns whether there is more to read than before
   */
  backfill(roomId: string, eventIds: readonly string[], limit: number): Promise<boolean> {
    return this.#backfilling.backfill(roomId, eventIds, limit);
  }

  /** Asks other servers for an event that is closer to a time than those that are here. Ten seconds at the most. */
  eventByTime(head: RoomHead, question: TimestampQuery): Promise<StoredEvent | undefined> {
    return this.#byTime.find(head, question);
  }

  /** Takes up what was left when the program ended. */
  start(): void {
    for (const roomId of this.#staging.rooms) this.#workers.wake(roomId);
    this.#missed.start();
  }

  /** Resolves when nothing is under way; what waits for another attempt does not count. */
  async settled(): Promise<void> {
    await this.#workers.settled();
    await this.#backfilling.settled();
    await this.#missed.settled();
    await this.#staging.settled();
  }

  /** Gives up what is under way; `start` of the next run takes it up. */
  async close(): Promise<void> {
    this.#queries.close();
    await this.#workers.close();
    await this.#missed.close();
    await this.settled();
  }

  async #process(
    head: RoomHead,
    origin: string,
    event: VerifiedEvent,
    options?: StateOptions,
  ): Promise<StoredEvent> {
    const { clock } = this.#deps;
    const begun = clock.monotonic();
    const first = [origin, serverOfUser(event.event.sender)];
    try {
      return await this.#queries.run(head, first, (query) => this.#processor.process(query, event, options));
    } finally {
      const took = clock.monotonic() - begun;
      this.#metrics.took(took);
      this.#backoff.recordDuration(head.roomId, origin, took);
      this.#missed.check(head.roomId);
    }
  }
}
