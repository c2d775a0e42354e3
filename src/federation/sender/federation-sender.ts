import type { Destinations, TransactionsApi } from '../../federation-client/index.ts';
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
import type { OutgoingPdu } from './events/outgoing-pdu.ts';
import { LazyQueue } from './queues/lazy-queue.ts';
import type { QueueDeps, SenderObserver } from './queues/queue-deps.ts';
import { SendSlots } from './queues/send-slots.ts';
import { type QueueState, ServerQueue } from './queues/server-queue.ts';
import { readPositions, readUnfinished } from './store.ts';
import type { SenderTables } from './tables.ts';
import { RetainedTransactions } from './transactions/retained-transactions.ts';

export interface FederationSenderDeps {
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
  /** Whether there is federation with a server. */
  readonly isDestination: (serverName: string) => boolean;
  readonly observer?: SenderObserver;
}

/** Transactions under way: to servers that are doing well, and to those that are behind, or of which nothing is known. */
const [healthySlots, unprovenSlots] = [200, 50];

/** Milliseconds between two looks at what is to be written down. */
const saveInterval = 1_000;

/** Milliseconds for which an event may be in memory only. */
const maxUnsavedTime = 5_000;

const silentObserver: SenderObserver = { acknowledged: () => undefined, failed: () => undefined };

/** The state of all that is to be sent, for metrics. */
export interface SenderStatus {
  readonly destinations: Readonly<Record<QueueState, number>>;
  readonly pendingPdus: number;
  readonly pendingEdus: number;
  /** Milliseconds for which the destination that has waited longest has. */
  readonly longestWait: number;
}

/**
 * Sends the events of this server, and what else it has to tell, to the servers that they concern.
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
  /** Everything on the stream up to here is in the queues. */
  #fannedOut: number;
  /** Everything on the stream up to here is delivered or on disk. */
  #settled: number;
  /** What had been delivered before the last stop, as far as it may be handed out again. */
  #delivered: ReadonlyMap<string, number> = new Map();

  constructor(deps: FederationSenderDeps) {
    this.#deps = deps;
    const { streams, clock, randomness, observer = silentObserver } = deps;
    this.#progress = new DeliveryProgress(deps);
    this.#fannedOut = this.#settled = streams.current;
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

  /** Takes up everything that was not delivered before the last stop. */
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

  /** Gives up what is under way, and notes what it was. */
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
   * Sends an EDU that is about now. Servers that can not be reached for as long as it is worth sending do without it,
   * and so do all that have not taken it when this one stops.
   * @param lazy it may wait some seconds, so that many destinations are not all sent something at once
   */
  sendEdu(destinations: Iterable<string>, edu: EphemeralEdu, { lazy = false } = {}): void {
    for (const destination of new Set(destinations)) {
      if (destination === this.#deps.serverName || !this.#deps.isDestination(destination)) continue;
      this.#queueOf(destination).addEphemeral(edu, !lazy);
      if (lazy) this.#lazy.add(destination);
    }
  }

  /** How things are going. */
  get status(): SenderStatus {
    const destinations = { idle: 0, sending: 0, 'catching up': 0, 'waiting to retry': 0 };
    let [pendingPdus, pendingEdus, longestWait] = [0, 0, 0];
    for (const queue of this.#queues.values()) {
      destinations[queue.state]++;
      pendingPdus += queue.pending.pdus;
      pendingEdus += queue.pending.edus;
      longestWait = Math.max(longestWait, queue.waitingFor ?? 0);
    }
    return { destinations, pendingPdus, pendingEdus, longestWait };
  }

  /** Resolves when all events so far have been handed to the queues of their destinations. */
  async caughtUp(): Promise<void> {
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
        .catch((error: unknown) => this.#deps.log.error({ err: error }, 'Deliveries could not be noted'))
        .finally(() => {
          this.#timer = undefined;
          const isBusy = this.#queues.values().some(({ state }) => state !== 'waiting to retry');
          if (isBusy || !this.#progress.isEmpty) this.#scheduleSave();
        });
    });
  }

  /** Writes down what is to survive a crash, and forgets queues that have nothing to do. */
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
