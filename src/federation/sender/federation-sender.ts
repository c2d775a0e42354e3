import type { Destinations, TransactionsApi } from '../../federation-client/index.ts';
import type { CacheRegistry } from '../../kernel/caches/index.ts';
import type { Clock, Timer } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { type Randomness, randomLetters } from '../../kernel/randomness.ts';
import { Follower, type StreamReader } from '../../kernel/streams/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import type { EduOutbox } from './edus/edu-outbox.ts';
import type { EphemeralEdu } from './edus/pending-edus.ts';
import { CatchUp } from './events/catch-up.ts';
import { DeliveryProgress } from './events/delivery-progress.ts';
import { EventFanOut } from './events/event-fan-out.ts';
import { LazyQueue } from './queues/lazy-queue.ts';
import type { QueueDeps, SenderObserver } from './queues/queue-deps.ts';
import { SendSlots } from './queues/send-slots.ts';
import { type QueueState, ServerQueue } from './queues/server-queue.ts';
import { readPositions, readUnfinished } from './store.ts';
import type { SenderTables } from './tables.ts';
import type { OutgoingPdu } from './transactions/outgoing-pdu.ts';
import { RetainedTransactions } from './transactions/retained-transactions.ts';

export interface FederationSenderDeps {
  readonly caches: CacheRegistry;
  readonly serverName: string;
  readonly database: Database;
  readonly streams: StreamReader;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly log: Logger;
  readonly engine: RoomReader;
  readonly destinations: Destinations;
  readonly api: Pick<TransactionsApi, 'send'>;
  readonly outbox: EduOutbox;
  /** Whether this server federates with a server. */
  readonly isDestination: (serverName: string) => boolean;
  readonly observer?: SenderObserver;
}

/** Maximum number of concurrent transactions to servers that have answered before and have no failed transaction. */
const healthySlots = 200;

/** Maximum number of concurrent transactions to all other destinations. */
const unprovenSlots = 50;

/** Milliseconds between two saves of the delivery progress. */
const saveInterval = 1_000;

/** Maximum milliseconds for which an unacknowledged event is in memory only. */
const maxUnsavedTime = 5_000;

const silentObserver: SenderObserver = { acknowledged: () => undefined, failed: () => undefined };

/** State of all queues, for metrics. */
export interface SenderStatus {
  /** Number of destinations in each state. */
  readonly destinations: Readonly<Record<QueueState, number>>;
  readonly pendingPdus: number;
  readonly pendingEdus: number;
  /** Milliseconds for which the longest waiting destination has acknowledged nothing. */
  readonly longestWait: number;
}

/**
 * Sends this server's events and EDUs to the servers that they concern.
 * Source: server-server API, "Transactions".
 */
export class FederationSender {
  readonly #deps: FederationSenderDeps;
  readonly #queueDeps: QueueDeps;
  readonly #progress: DeliveryProgress;
  readonly #queues = new Map<string, ServerQueue>();
  readonly #lazy: LazyQueue;
  readonly #follower: Follower;
  readonly #stopping = new AbortController();
  readonly #subscriptions: (() => void)[] = [];
  #timer: Timer | undefined;
  #saving: Promise<void> | undefined;
  /** Stream position up to which events are in the queues. */
  #fannedOut: number;
  /** Stream position up to which events are delivered or recorded in the database. */
  #settled: number;
  /**
   * Stream positions up to which events were delivered before the last stop, by destination. Only positions after the
   * follower's starting point.
   */
  #delivered: ReadonlyMap<string, number> = new Map();

  constructor(deps: FederationSenderDeps) {
    this.#deps = deps;
    const { streams, clock, randomness, observer = silentObserver } = deps;
    this.#progress = new DeliveryProgress(deps);
    this.#fannedOut = this.#settled = streams.current;
    // Distinguishes the transaction ids of this run from those of earlier runs.
    const run = randomLetters(randomness, 10);
    let transactions = 0;
    this.#queueDeps = {
      ...deps,
      observer,
      progress: this.#progress,
      catchUp: new CatchUp({ ...deps, progress: this.#progress }),
      retained: new RetainedTransactions(),
      slots: { healthy: new SendSlots(healthySlots), unproven: new SendSlots(unprovenSlots) },
      stopping: this.#stopping.signal,
      nextTransactionId: () => `${run}_${++transactions}`,
      onActivity: () => this.#scheduleSave(),
    };
    this.#lazy = new LazyQueue(clock, (destination) => this.#queues.get(destination)?.kick());
    const fanOut = new EventFanOut({ ...deps, deliver: (pdu, names) => this.#deliver(pdu, names) });
    this.#follower = new Follower(deps, {
      name: 'federation-sender',
      follow: async (after, upTo) => {
        await fanOut.fanOut(after, upTo);
        this.#fannedOut = upTo;
        this.#delivered = new Map();
        this.#scheduleSave();
      },
      settled: () => this.#settled,
    });
  }

  /** Starts to send, first the events and EDUs that are pending since the last stop. */
  async start(): Promise<void> {
    const { database, destinations, outbox } = this.#deps;
    const reader = database.reader<SenderTables>();
    const { behind, withEdus } = await readUnfinished(reader);
    this.#fannedOut = this.#settled = await this.#follower.startingPoint();
    this.#delivered = await readPositions(reader, this.#settled);
    for (const destination of behind) this.#queueOf(destination, true);
    for (const destination of withEdus) this.#queueOf(destination).addedToOutbox();
    for (const destination of behind) this.#lazy.add(destination);
    this.#subscriptions.push(
      destinations.onReturn((serverName) => this.#queues.get(serverName)?.retryNow()),
      outbox.onAdded((destination) => this.#queueOf(destination).addedToOutbox()),
    );
    await this.#follower.start();
  }

  /** Aborts pending transactions, and records their events as missed. */
  async stop(): Promise<void> {
    for (const end of this.#subscriptions) end();
    this.#lazy.stop();
    this.#timer?.cancel();
    this.#stopping.abort();
    await Promise.all(Array.from(this.#queues.values(), (queue) => queue.stopped()));
    await this.#saving;
    const upTo = this.#fannedOut;
    for (const queue of this.#queues.values()) queue.recordMissed();
    await this.#progress.flush();
    this.#settled = upTo;
    await this.#follower.stop();
  }

  /**
   * Sends an ephemeral EDU. Servers that are unreachable until it expires never receive it, and neither do servers that
   * have not acknowledged it when this server stops.
   * @param options `lazy`: whether the EDU may be delayed by some seconds, so that requests to many servers are spread
   */
  sendEdu(destinations: Iterable<string>, edu: EphemeralEdu, { lazy = false } = {}): void {
    for (const destination of new Set(destinations)) {
      if (destination === this.#deps.serverName || !this.#deps.isDestination(destination)) continue;
      this.#queueOf(destination).addEphemeral(edu, !lazy);
      if (lazy) this.#lazy.add(destination);
    }
  }

  /** State of all queues. */
  get status(): SenderStatus {
    const destinations = { idle: 0, sending: 0, 'catching up': 0, 'waiting to retry': 0 };
    let pendingPdus = 0;
    let pendingEdus = 0;
    let longestWait = 0;
    for (const queue of this.#queues.values()) {
      destinations[queue.state]++;
      pendingPdus += queue.pending.pdus;
      pendingEdus += queue.pending.edus;
      longestWait = Math.max(longestWait, queue.waitingFor ?? 0);
    }
    return { destinations, pendingPdus, pendingEdus, longestWait };
  }

  /** Resolves when all events so far are in the queues of their destinations. */
  async eventsQueued(): Promise<void> {
    await this.#follower.caughtUp();
  }

  #deliver(pdu: OutgoingPdu, destinations: readonly string[]): void {
    for (const destination of destinations) {
      if ((this.#delivered.get(destination) ?? 0) >= pdu.stream) continue;
      this.#queueOf(destination).add(pdu);
    }
  }

  #queueOf(destination: string, behind = false): ServerQueue {
    let queue = this.#queues.get(destination);
    if (!queue) {
      queue = new ServerQueue(destination, this.#queueDeps, { behind });
      this.#queues.set(destination, queue);
    }
    return queue;
  }

  #scheduleSave(): void {
    if (this.#stopping.signal.aborted) return;
    this.#timer ??= this.#deps.clock.setTimer(saveInterval, () => {
      this.#saving = this.#saveProgress()
        .catch((error: unknown) =>
          this.#deps.log.error({ err: error }, 'Delivery progress could not be saved'),
        )
        .finally(() => {
          this.#timer = undefined;
          const isBusy = this.#queues.values().some(({ state }) => state !== 'waiting to retry');
          if (isBusy || !this.#progress.isEmpty) this.#scheduleSave();
        });
    });
  }

  /** Saves the delivery progress, which must survive a crash, and removes idle queues. */
  async #saveProgress(): Promise<void> {
    let settled = this.#fannedOut;
    for (const [destination, queue] of this.#queues) {
      if ((queue.waitingFor ?? 0) >= maxUnsavedTime) queue.recordMissed();
      settled = Math.min(settled, (queue.firstUnrecorded ?? settled + 1) - 1);
      if (queue.isIdle) this.#queues.delete(destination);
    }
    await this.#progress.flush();
    this.#settled = settled;
  }
}
