import type { QueueDeps } from '../queues/queue-deps.ts';
import type { CaughtUp, Transaction } from '../transactions/transaction.ts';
import type { OutgoingPdu } from './outgoing-pdu.ts';

/** Events that wait in memory for one destination; with more it is behind and catches up from the disk. */
const maxWaiting = 500;

/** Events for the next transaction. */
export interface NextEvents {
  readonly pdus: readonly OutgoingPdu[];
  /** Set when they were read from the disk. */
  readonly caughtUp: CaughtUp | undefined;
}

/**
 * The events for one server. Those of a server that can not keep up, or can not be reached, do not wait in memory: it
 * is `behind`, and what is noted on disk is which rooms it lacks events of.
 */
export class PendingEvents {
  readonly #destination: string;
  readonly #deps: Pick<QueueDeps, 'progress' | 'catchUp'>;
  #waiting: OutgoingPdu[] = [];
  /** On their way, or to be sent again before anything else. */
  #inFlight: readonly OutgoingPdu[] = [];
  /** Up to which place on the stream what is in memory is noted on disk as well. */
  #recordedUpTo = 0;
  #behind: boolean;
  /** Counts what was noted while the server was behind, so that nothing is overlooked when it no longer is. */
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

  get behind(): boolean {
    return this.#behind;
  }

  /** How many wait in memory. */
  get size(): number {
    return this.#waiting.length;
  }

  /** The first place on the stream of what is in memory only, `undefined` when nothing is. */
  get firstUnrecorded(): number | undefined {
    return this.#unsent().find(({ stream }) => stream > this.#recordedUpTo)?.stream;
  }

  /** Takes an event. They come in the order of the stream. */
  add(pdu: OutgoingPdu): void {
    if (this.#behind) {
      this.#missed++;
      this.#deps.progress.missed(this.#destination, pdu);
      return;
    }
    this.#waiting.push(pdu);
    if (this.#waiting.length > maxWaiting) this.fallBehind();
  }

  /** From now on events are noted only. */
  fallBehind(): void {
    this.recordMissed();
    this.#behind = true;
    this.#waiting = [];
  }

  /** Notes what is in memory only, so that it is not lost with the memory. It stays in memory nevertheless. */
  recordMissed(): void {
    for (const pdu of this.#unsent()) {
      if (pdu.stream <= this.#recordedUpTo) continue;
      this.#deps.progress.missed(this.#destination, pdu);
      this.#recordedUpTo = pdu.stream;
    }
  }

  /**
   * The newest events of rooms that the server lacks events of; `undefined` once it lacks nothing, and what waits in
   * memory is next.
   */
  async catchUp(most: number): Promise<NextEvents | undefined> {
    const { catchUp, progress: notes } = this.#deps;
    while (this.#behind) {
      const missed = this.#missed;
      const found = await catchUp.next(this.#destination, most);
      if (!found) {
        if (missed === this.#missed) this.#behind = false;
      } else if (found.pdus.length > 0) return found;
      else for (const [roomNid, upTo] of found.caughtUp) notes.arrived(this.#destination, roomNid, upTo);
    }
    return undefined;
  }

  /** Takes out the first ones that wait in memory. */
  take(most: number): NextEvents {
    this.#inFlight = this.#waiting.splice(0, most);
    return { pdus: this.#inFlight, caughtUp: undefined };
  }

  /** What was taken out is to be sent in other transactions. */
  putBack({ pdus, caughtUp }: NextEvents): void {
    this.#inFlight = [];
    if (!caughtUp && !this.#behind) this.#waiting.unshift(...pdus);
  }

  /** What was taken out is not held any more; it is noted already. */
  forget(): void {
    this.#inFlight = [];
  }

  /** The server has what was taken out, or is not to be sent it again. */
  settled({ pdus, caughtUp }: Pick<Transaction, 'pdus' | 'caughtUp'>): void {
    const { progress: notes } = this.#deps;
    this.#inFlight = [];
    for (const [roomNid, upTo] of caughtUp ?? []) notes.arrived(this.#destination, roomNid, upTo);
    if (caughtUp) return;
    for (const { roomNid, stream } of pdus) {
      if (stream <= this.#recordedUpTo) notes.arrived(this.#destination, roomNid, stream);
    }
    const last = pdus.at(-1);
    if (last) notes.delivered(this.#destination, last.stream);
  }

  /** Events in memory that the server may not have, in the order of the stream. */
  #unsent(): readonly OutgoingPdu[] {
    return this.#inFlight.length === 0 ? this.#waiting : [...this.#inFlight, ...this.#waiting];
  }
}
