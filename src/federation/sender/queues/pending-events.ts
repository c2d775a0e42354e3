import type { OutgoingPdu } from '../transactions/outgoing-pdu.ts';
import type { CaughtUp, Transaction } from '../transactions/transaction.ts';
import type { QueueDeps } from './queue-deps.ts';

/**
 * Maximum number of pending events in memory for one destination; beyond it the destination is behind and
 * catches up from the database.
 */
const maxPending = 500;

/** Events for the next transaction. */
export interface NextEvents {
  readonly pdus: readonly OutgoingPdu[];
  /** Set when the events were read from the database. */
  readonly caughtUp: CaughtUp | undefined;
}

/**
 * Pending events for one server. Events for a server that is too slow or unreachable are not stored in
 * memory: it is `behind`, and the database records the rooms with events that it lacks.
 */
export class PendingEvents {
  readonly #destination: string;
  readonly #deps: Pick<QueueDeps, 'progress' | 'catchUp'>;
  #pending: OutgoingPdu[] = [];
  /** Events in flight, or to be sent again before all other events. */
  #inFlight: readonly OutgoingPdu[] = [];
  /** Stream position up to which the events in memory are also recorded in the database. */
  #recordedUpTo = 0;
  #behind: boolean;
  /** Counts events recorded while the server was behind, so that none is overlooked when it has caught up. */
  #missed = 0;

  constructor(
    destination: string,
    deps: Pick<QueueDeps, 'progress' | 'catchUp'>,
    { behind }: { readonly behind: boolean },
  ) {
    this.#destination = destination;
    this.#deps = deps;
    this.#behind = behind;
  }

  /** Whether the server has missed events, which are recorded in the database. */
  get behind(): boolean {
    return this.#behind;
  }

  /** Number of pending events in memory. */
  get size(): number {
    return this.#pending.length;
  }

  /** Stream position of the first event that is in memory only; `undefined` when there is none. */
  get firstUnrecorded(): number | undefined {
    return this.#unsent().find(({ stream }) => stream > this.#recordedUpTo)?.stream;
  }

  /** Adds an event. Events are added in stream order. */
  add(pdu: OutgoingPdu): void {
    if (this.#behind) {
      this.#missed++;
      this.#deps.progress.missed(this.#destination, pdu);
      return;
    }
    this.#pending.push(pdu);
    if (this.#pending.length > maxPending) this.fallBehind();
  }

  /**
   * Records the pending events as missed and drops them from memory. `add` does the same with each further event until
   * the server has caught up.
   */
  fallBehind(): void {
    this.recordMissed();
    this.#behind = true;
    this.#pending = [];
  }

  /** Records unacknowledged events in memory as missed, so that a crash does not lose them. They stay in memory. */
  recordMissed(): void {
    for (const pdu of this.#unsent()) {
      if (pdu.stream <= this.#recordedUpTo) continue;
      this.#deps.progress.missed(this.#destination, pdu);
      this.#recordedUpTo = pdu.stream;
    }
  }

  /**
   * Returns the newest events of the rooms in which the server lacks events; `undefined` when it has caught up and the
   * events in memory are next.
   */
  async catchUp(limit: number): Promise<NextEvents | undefined> {
    const { catchUp, progress } = this.#deps;
    while (this.#behind) {
      const missed = this.#missed;
      const nextEvents = await catchUp.next(this.#destination, limit);
      if (!nextEvents) {
        if (missed === this.#missed) this.#behind = false;
      } else if (nextEvents.pdus.length > 0) return nextEvents;
      else
        for (const [roomNid, upTo] of nextEvents.caughtUp) progress.arrived(this.#destination, roomNid, upTo);
    }
    return undefined;
  }

  /** Takes out the first pending events in memory. */
  take(limit: number): NextEvents {
    this.#inFlight = this.#pending.splice(0, limit);
    return { pdus: this.#inFlight, caughtUp: undefined };
  }

  /** Makes events that were taken out pending again, for other transactions. */
  putBack({ pdus, caughtUp }: NextEvents): void {
    this.#inFlight = [];
    if (!caughtUp && !this.#behind) this.#pending.unshift(...pdus);
  }

  /** Drops the events in flight from memory; they are recorded as missed. */
  forget(): void {
    this.#inFlight = [];
  }

  /** Drops events that were taken out, because the server has them or has refused them. */
  settled({ pdus, caughtUp }: Pick<Transaction, 'pdus' | 'caughtUp'>): void {
    const { progress } = this.#deps;
    this.#inFlight = [];
    for (const [roomNid, upTo] of caughtUp ?? []) progress.arrived(this.#destination, roomNid, upTo);
    if (caughtUp) return;
    for (const { roomNid, stream } of pdus) {
      if (stream <= this.#recordedUpTo) progress.arrived(this.#destination, roomNid, stream);
    }
    const last = pdus.at(-1);
    if (last) progress.delivered(this.#destination, last.stream);
  }

  /** Events in memory that the server possibly lacks, in stream order. */
  #unsent(): readonly OutgoingPdu[] {
    return this.#inFlight.length === 0 ? this.#pending : [...this.#inFlight, ...this.#pending];
  }
}
