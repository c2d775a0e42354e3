import { FederationError, RemoteError } from '../../../federation-client/index.ts';
import type { Timer } from '../../../kernel/clock.ts';
import type { EphemeralEdu } from '../edus/pending-edus.ts';
import type { OutgoingPdu } from '../events/outgoing-pdu.ts';
import { sizeOf, type Transaction, transactionText } from '../transactions/transaction.ts';
import { QueueContents } from './queue-contents.ts';
import type { QueueDeps } from './queue-deps.ts';
import type { HeldSlot } from './send-slots.ts';

/** Milliseconds until the next attempt after an error of our own, and when nothing says how long to wait. */
const usualPause = 5_000;

/** How a destination is doing, for metrics. */
export type QueueState = 'idle' | 'sending' | 'catching up' | 'waiting to retry';

/**
 * What one server is to be sent, and the sending: one transaction at a time, in order, the same again until the server
 * has it. A server that can not keep up, or can not be reached, is `behind`: which rooms it lacks events of is noted on
 * disk, and once it is back it is sent the newest events of these rooms, from which it finds the others.
 */
export class ServerQueue {
  readonly destination: string;
  readonly #deps: QueueDeps;
  readonly #contents: QueueContents;
  /** On its way, or to be sent again before anything else. */
  #transaction: Transaction | undefined;
  /** What the memory for kept transactions counts for it. */
  #retainedSize = 0;
  #running: Promise<void> | undefined;
  #again = false;
  #retry: Timer | undefined;
  /** When that is, by the monotonic clock. */
  #retryAt = 0;
  /** Since when something waits, or when the server last took something, by the monotonic clock. */
  #busySince: number | undefined;

  constructor(destination: string, deps: QueueDeps, options: { readonly behind: boolean }) {
    this.destination = destination;
    this.#deps = deps;
    this.#contents = new QueueContents(destination, deps, options);
  }

  /** Whether there is nothing to do and nothing to remember. */
  get isIdle(): boolean {
    return this.#contents.isEmpty && !this.#transaction && !this.#running && !this.#retry;
  }

  get state(): QueueState {
    if (this.#retry) return 'waiting to retry';
    if (this.#contents.events.behind) return 'catching up';
    return this.#running ? 'sending' : 'idle';
  }

  /** Events and ephemeral EDUs in memory. */
  get pending(): { readonly pdus: number; readonly edus: number } {
    const inFlight = this.#transaction?.pdus.length ?? 0;
    return { pdus: this.#contents.events.size + inFlight, edus: this.#contents.ephemeral };
  }

  /** Milliseconds for which something waits and nothing was taken; `undefined` when nothing waits. */
  get waitingFor(): number | undefined {
    return this.#busySince === undefined ? undefined : this.#deps.clock.monotonic() - this.#busySince;
  }

  /** The first place on the stream of what is in memory only, `undefined` when nothing is. */
  get firstUnrecorded(): number | undefined {
    return this.#contents.events.firstUnrecorded;
  }

  /** Takes an event. They come in the order of the stream. */
  add(pdu: OutgoingPdu): void {
    this.#contents.events.add(pdu);
    this.kick();
  }

  /**
   * Takes an EDU, unless the server is left alone for longer than it is worth sending.
   * @param kick whether it is sent as soon as that is possible
   */
  addEphemeral(edu: EphemeralEdu, kick: boolean): void {
    if (this.#retry && this.#retryAt - this.#deps.clock.monotonic() >= edu.lifetime) return;
    this.#contents.addEphemeral(edu);
    if (kick) this.kick();
  }

  /** There is something in the outbox. */
  addedToOutbox(): void {
    this.#contents.addedToOutbox();
    this.kick();
  }

  /** Sends what there is, unless the server is being left alone. */
  kick(): void {
    this.#deps.onActivity();
    if (this.#retry || this.#deps.stopping.aborted) return;
    this.#busySince ??= this.#deps.clock.monotonic();
    this.#again = true;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      if (this.#again) this.kick();
    });
  }

  /** The server may be back. */
  retryNow(): void {
    this.#retry?.cancel();
    this.#retry = undefined;
    this.kick();
  }

  /** Notes what is in memory only, so that it is not lost with the memory. It stays in memory nevertheless. */
  recordMissed(): void {
    this.#contents.events.recordMissed();
  }

  /** After the stopping signal: resolves when nothing is under way any more. What was not acknowledged is noted. */
  async stopped(): Promise<void> {
    this.#retry?.cancel();
    await this.#running;
    this.recordMissed();
  }

  async #run(): Promise<void> {
    const { slots, stopping, log } = this.#deps;
    // One turn of the event loop later: what is handed out together is sent together.
    await new Promise(setImmediate);
    const slot = await ((await this.#isUnproven()) ? slots.unproven : slots.healthy).take();
    try {
      if (await this.#isBackingOff()) return;
      while (!stopping.aborted && !this.#retry) {
        this.#again = false;
        this.#transaction ??= await this.#contents.next();
        if (this.#transaction) await this.#send(this.#transaction, slot);
        else if (!this.#again) {
          this.#busySince = undefined;
          break;
        }
      }
    } catch (error) {
      if (stopping.aborted) return;
      log.error({ err: error, destination: this.destination }, 'Sending to a server has failed');
      this.#pause(usualPause);
    } finally {
      slot.release();
    }
  }

  /** Whether the server may not be there: it has never answered, or not lately. */
  async #isUnproven(): Promise<boolean> {
    if (this.#contents.events.behind || this.#transaction) return true;
    try {
      return (await this.#deps.destinations.get(this.destination)).spelling === undefined;
    } catch {
      return true; // The database does not answer: that comes up again below, where it is dealt with.
    }
  }

  /** Whether it is not time yet to try again; a timer is set then. */
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
    this.#again = false;
    if (stopping.aborted) return;
    this.#retry?.cancel();
    this.#retry = clock.setTimer(delay, () => this.retryNow());
    this.#retryAt = clock.monotonic() + delay;
    this.#contents.dropStaleIn(delay);
  }

  async #send(transaction: Transaction, slot: HeldSlot): Promise<void> {
    const { api, clock, serverName, slots, stopping: signal, log } = this.#deps;
    const begunAt = clock.now();
    const text = transactionText(transaction, serverName, begunAt);
    try {
      const refused = await api.send(this.destination, transaction.id, text, {
        signal,
        duringRetryDelay: (pause) => slot.during(pause, slots.unproven),
      });
      if (refused.size > 0) {
        log.debug(
          { destination: this.destination, refused: Object.fromEntries(refused) },
          'Events were refused',
        );
      }
    } catch (error) {
      if (isRefusal(error)) return this.#refused(transaction, error, begunAt);
      this.#contents.putBackEphemeral(transaction);
      if (!(error instanceof FederationError)) throw error;
      return this.#failed(transaction, error, begunAt);
    }
    this.#contents.size.taken();
    await this.#acknowledged(transaction);
  }

  async #acknowledged(transaction: Transaction): Promise<void> {
    this.#forget();
    this.#busySince = this.#deps.clock.monotonic();
    this.#deps.observer.acknowledged(this.destination, transaction);
    await this.#contents.settled(transaction);
  }

  /**
   * The server does not want what is in the transaction: smaller ones show what it is, which is then left out. One that
   * takes nothing at all is a server that is not in order.
   */
  async #refused(transaction: Transaction, error: RemoteError, begunAt: number): Promise<void> {
    const { log } = this.#deps;
    const { pdus, durable, ephemeral } = transaction;
    const count = pdus.length + durable.length + ephemeral.length;
    log.warn({ err: error, destination: this.destination, count }, 'A server has refused a transaction');
    const next = this.#contents.size.refused(count);
    if (next === 'leave out') return this.#acknowledged(transaction);
    this.#contents.putBackEphemeral(transaction);
    if (next === 'wait') return this.#failed(transaction, error, begunAt);
    this.#forget();
    this.#contents.putBack(transaction);
  }

  /** The server can not be reached: what is there for it goes to the disk, until it is back. */
  async #failed(transaction: Transaction, error: FederationError, begunAt: number): Promise<void> {
    const { destinations, retained: kept, clock, observer, log } = this.#deps;
    log.debug({ err: error, destination: this.destination }, 'A transaction could not be delivered');
    observer.failed(this.destination);
    this.#contents.events.fallBehind();
    if (isEmpty(transaction)) this.#transaction = undefined;
    else if (this.#retainedSize === 0) {
      const size = sizeOf(transaction);
      if (kept.reserve(size)) this.#retainedSize = size;
      else {
        this.#transaction = undefined;
        this.#contents.forget(transaction);
      }
    }
    // An answer of any kind is a sign of life, but one that does not take transactions is not to be asked all the time.
    await destinations.recordFailure(this.destination, begunAt);
    const until = await destinations.backoffUntil(this.destination);
    this.#pause(until === undefined ? usualPause : until - clock.now());
  }

  /** There is no transaction any more to be sent again. */
  #forget(): void {
    this.#transaction = undefined;
    if (this.#retainedSize > 0) this.#deps.retained.release(this.#retainedSize);
    this.#retainedSize = 0;
  }
}

/** Whether the server says that the transaction itself is wrong: too large, or something in it that it can not read. */
function isRefusal(error: unknown): error is RemoteError {
  return error instanceof RemoteError && (error.status === 400 || error.status === 413);
}

/** Whether nothing is in it that has to arrive. */
const isEmpty = ({ pdus, durable }: Transaction): boolean => pdus.length + durable.length === 0;
