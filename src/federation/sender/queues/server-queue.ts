import { FederationError, RemoteError } from '../../../federation-client/index.ts';
import type { Timer } from '../../../kernel/clock.ts';
import type { EphemeralEdu } from '../edus/pending-edus.ts';
import type { OutgoingPdu } from '../transactions/outgoing-pdu.ts';
import { sizeOf, type Transaction, transactionText } from '../transactions/transaction.ts';
import { QueueContents } from './queue-contents.ts';
import type { QueueDeps } from './queue-deps.ts';
import type { HeldSlot } from './send-slots.ts';

/** Backoff in milliseconds after an internal error, and after a failure that put the destination into no backoff. */
const defaultBackoff = 5_000;

/** State of a destination, for metrics. */
export type QueueState = 'idle' | 'sending' | 'catching up' | 'waiting to retry';

/**
 * Sends to one server: one transaction at a time, in order, each repeated until the server acknowledges it. A server
 * that is too slow or unreachable is `behind`: the database records the rooms with events that it lacks. When it is
 * reachable again, it receives the newest events of these rooms, and fetches older events itself.
 */
export class ServerQueue {
  readonly destination: string;
  readonly #deps: QueueDeps;
  readonly #contents: QueueContents;
  /** The transaction in flight, or to be sent again before all other transactions. */
  #transaction: Transaction | undefined;
  /** The size that `RetainedTransactions` counts for `#transaction`; 0 where it is not retained. */
  #retainedSize = 0;
  #running: Promise<void> | undefined;
  #mustRunAgain = false;
  #retry: Timer | undefined;
  /** Time of the next attempt, by the monotonic clock. */
  #retryAt = 0;
  /** When something became pending, or when the last acknowledgement arrived, by the monotonic clock. */
  #busySince: number | undefined;

  constructor(destination: string, deps: QueueDeps, options: { readonly behind: boolean }) {
    this.destination = destination;
    this.#deps = deps;
    this.#contents = new QueueContents(destination, deps, options);
  }

  /** Whether the queue has no work and no state to remember. */
  get isIdle(): boolean {
    return this.#contents.isEmpty && !this.#transaction && !this.#running && !this.#retry;
  }

  /** The state of the queue, for metrics. */
  get state(): QueueState {
    if (this.#retry) return 'waiting to retry';
    if (this.#contents.events.behind) return 'catching up';
    return this.#running ? 'sending' : 'idle';
  }

  /** Number of events and ephemeral EDUs in memory. */
  get pending(): { readonly pdus: number; readonly edus: number } {
    const inFlight = this.#transaction?.pdus.length ?? 0;
    return { pdus: this.#contents.events.size + inFlight, edus: this.#contents.ephemeralCount };
  }

  /** Milliseconds for which something is pending and nothing was acknowledged; `undefined` when nothing is pending. */
  get waitingFor(): number | undefined {
    return this.#busySince === undefined ? undefined : this.#deps.clock.monotonic() - this.#busySince;
  }

  /** Stream position of the first event that is in memory only; `undefined` when there is none. */
  get firstUnrecorded(): number | undefined {
    return this.#contents.events.firstUnrecorded;
  }

  /** Adds an event. Events are added in stream order. */
  add(pdu: OutgoingPdu): void {
    this.#contents.events.add(pdu);
    this.kick();
  }

  /**
   * Adds an ephemeral EDU, unless it expires before the next attempt.
   * @param kick whether to send it as soon as possible
   */
  addEphemeral(edu: EphemeralEdu, kick: boolean): void {
    if (this.#retry && this.#retryAt - this.#deps.clock.monotonic() >= edu.lifetime) return;
    this.#contents.addEphemeral(edu);
    if (kick) this.kick();
  }

  /** Called when an EDU was added to the outbox. */
  addedToOutbox(): void {
    this.#contents.addedToOutbox();
    this.kick();
  }

  /** Starts sending, unless the server is in backoff. */
  kick(): void {
    this.#deps.onActivity();
    if (this.#retry || this.#deps.stopping.aborted) return;
    this.#busySince ??= this.#deps.clock.monotonic();
    this.#mustRunAgain = true;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      if (this.#mustRunAgain) this.kick();
    });
  }

  /** Tries again at once, because the server may be reachable again. */
  retryNow(): void {
    this.#retry?.cancel();
    this.#retry = undefined;
    this.kick();
  }

  /** Records unacknowledged events in memory as missed, so that a crash does not lose them. They stay in memory. */
  recordMissed(): void {
    this.#contents.events.recordMissed();
  }

  /** Resolves after the stopping signal when no request is pending, and records unacknowledged events as missed. */
  async stopped(): Promise<void> {
    this.#retry?.cancel();
    await this.#running;
    this.recordMissed();
  }

  async #run(): Promise<void> {
    const { slots, stopping, log } = this.#deps;
    // Waits for one turn of the event loop, so that events of the same turn are sent together.
    await new Promise(setImmediate);
    const slot = await ((await this.#isUnproven()) ? slots.unproven : slots.healthy).take();
    try {
      if (await this.#isBackingOff()) return;
      while (!stopping.aborted && !this.#retry) {
        this.#mustRunAgain = false;
        this.#transaction ??= await this.#contents.next();
        if (this.#transaction) await this.#send(this.#transaction, slot);
        else if (!this.#mustRunAgain) {
          this.#busySince = undefined;
          break;
        }
      }
    } catch (error) {
      if (stopping.aborted) return;
      log.error({ err: error, destination: this.destination }, 'Sending to a server has failed');
      this.#pause(defaultBackoff);
    } finally {
      slot.release();
    }
  }

  /** Whether the server may be unreachable: it is behind, a transaction has failed, or it has never answered. */
  async #isUnproven(): Promise<boolean> {
    if (this.#contents.events.behind || this.#transaction) return true;
    try {
      return !(await this.#hasAnswered());
    } catch {
      return true; // A database failure; the next query fails too and is handled there.
    }
  }

  /**
   * Returns how a transaction is retried before the backoff. A transaction without events is not retried if the server
   * has never answered: users may send to-device messages to made-up servers.
   */
  async #retryOf({ pdus }: Transaction): Promise<'long' | 'none'> {
    return pdus.length > 0 || (await this.#hasAnswered()) ? 'long' : 'none';
  }

  /** Whether the server has ever answered a request. */
  async #hasAnswered(): Promise<boolean> {
    return (await this.#deps.destinations.get(this.destination)).spelling !== undefined;
  }

  /** Whether the server is in backoff; then a timer is set. */
  async #isBackingOff(): Promise<boolean> {
    const { destinations, clock } = this.#deps;
    const until = await destinations.backoffUntil(this.destination);
    if (until === undefined) return false;
    this.#contents.events.fallBehind();
    this.#pause(until - clock.now());
    return true;
  }

  #pause(delay: number): void {
    const { clock, stopping } = this.#deps;
    this.#mustRunAgain = false;
    if (stopping.aborted) return;
    this.#retry?.cancel();
    this.#retry = clock.setTimer(delay, () => this.retryNow());
    this.#retryAt = clock.monotonic() + delay;
    this.#contents.dropExpiringWithin(delay);
  }

  async #send(transaction: Transaction, slot: HeldSlot): Promise<void> {
    const { api, clock, serverName, slots, stopping: signal, log } = this.#deps;
    const startedAt = clock.now();
    const text = transactionText(transaction, serverName, startedAt);
    try {
      const refusedPdus = await api.send(this.destination, transaction.id, text, {
        signal,
        retry: await this.#retryOf(transaction),
        duringRetryDelay: (pause) => slot.releaseDuring(pause, slots.unproven),
      });
      if (refusedPdus.size > 0) {
        log.debug(
          { destination: this.destination, refused: Object.fromEntries(refusedPdus) },
          'The other server refused events',
        );
      }
    } catch (error) {
      if (isRejected(error)) return this.#refused(transaction, error, startedAt);
      this.#contents.putBackEphemeral(transaction);
      if (!(error instanceof FederationError)) throw error;
      return this.#failed(transaction, error, startedAt);
    }
    this.#contents.size.acknowledged();
    await this.#acknowledged(transaction);
  }

  async #acknowledged(transaction: Transaction): Promise<void> {
    this.#forget();
    this.#busySince = this.#deps.clock.monotonic();
    this.#deps.observer.acknowledged(this.destination, transaction);
    await this.#contents.settled(transaction);
  }

  /**
   * Handles a refused transaction. Sends smaller transactions until it finds the event or EDU that the server refuses,
   * and drops that one. Puts a server that refuses everything into backoff.
   */
  async #refused(transaction: Transaction, error: RemoteError, startedAt: number): Promise<void> {
    const { log } = this.#deps;
    const { pdus, durable, ephemeral } = transaction;
    const count = pdus.length + durable.length + ephemeral.length;
    log.warn({ err: error, destination: this.destination, count }, 'The other server refused a transaction');
    const next = this.#contents.size.refused(count);
    if (next === 'leave out') return this.#acknowledged(transaction);
    this.#contents.putBackEphemeral(transaction);
    if (next === 'wait') return this.#failed(transaction, error, startedAt);
    this.#forget();
    this.#contents.putBack(transaction);
  }

  /**
   * Handles a failed delivery: pending events are only recorded in the database until the server is reachable again.
   */
  async #failed(transaction: Transaction, error: FederationError, startedAt: number): Promise<void> {
    const { destinations, retained, clock, observer, log } = this.#deps;
    log.debug({ err: error, destination: this.destination }, 'A transaction could not be delivered');
    observer.failed(this.destination);
    this.#contents.events.fallBehind();
    if (isEmpty(transaction)) this.#transaction = undefined;
    else if (this.#retainedSize === 0) {
      const size = sizeOf(transaction);
      if (retained.reserve(size)) this.#retainedSize = size;
      else {
        this.#transaction = undefined;
        this.#contents.forget(transaction);
      }
    }
    // Any response counts as a sign that the server is reachable. A server that refuses transactions must not receive
    // requests all the time, so the failure is recorded here.
    await destinations.recordFailure(this.destination, startedAt);
    const until = await destinations.backoffUntil(this.destination);
    this.#pause(until === undefined ? defaultBackoff : until - clock.now());
  }

  /** Drops the transaction that would be repeated. */
  #forget(): void {
    this.#transaction = undefined;
    if (this.#retainedSize > 0) this.#deps.retained.release(this.#retainedSize);
    this.#retainedSize = 0;
  }
}

/** Whether the server says that the transaction itself is invalid: too large, or not parseable. */
function isRejected(error: unknown): error is RemoteError {
  return error instanceof RemoteError && (error.status === 400 || error.status === 413);
}

/** Whether a transaction has no events and no durable EDUs. */
const isEmpty = ({ pdus, durable }: Transaction): boolean => pdus.length + durable.length === 0;
