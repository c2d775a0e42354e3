import type { Clock } from '../clock.ts';
import { LoadOnce } from '../load-once.ts';

/** An IP address of a host. */
export interface HostAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/**
 * Maximum number of look-ups that libuv has at the same time. Each takes a thread of its pool until the name server
 * answers. With the default pool, libuv runs two at a time and keeps the others in a queue, where they cannot be
 * cancelled.
 */
const maxRunning = 4;

/** Maximum number of hosts that wait. */
const maxWaiting = 1_000;

/** Milliseconds after which a waiting host is not looked up: the connection that needs its address is about to time out. */
const maxWait = 8_000;

interface WaitingHost {
  /** Monotonic milliseconds. */
  readonly since: number;
  readonly start: () => void;
  readonly refuse: () => void;
}

/**
 * Looks up hosts, a few at a time. A user may name thousands of hosts whose name servers never answer: without a bound,
 * they would delay the look-ups of all other hosts for hours.
 */
export class LookupQueue {
  readonly #lookup: (host: string) => Promise<readonly HostAddress[]>;
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** Running and waiting look-ups by host. */
  readonly #pending = new LoadOnce<string, readonly HostAddress[]>();
  readonly #waiting: WaitingHost[] = [];
  #running = 0;

  constructor(lookup: (host: string) => Promise<readonly HostAddress[]>, clock: Pick<Clock, 'monotonic'>) {
    this.#lookup = lookup;
    this.#clock = clock;
  }

  /**
   * Returns all addresses of a host. Concurrent callers share one look-up.
   * @throws Error of the look-up; with the code `EAI_AGAIN` when too many hosts wait, or this one has waited for too long
   */
  addresses(host: string): Promise<readonly HostAddress[]> {
    return this.#pending.get(host) ?? this.#pending.run(host, () => this.#run(host));
  }

  async #run(host: string): Promise<readonly HostAddress[]> {
    if (this.#running >= maxRunning) await this.#waitForTurn(host);
    else this.#running++;
    try {
      return await this.#lookup(host);
    } finally {
      this.#running--;
      this.#startNext();
    }
  }

  #waitForTurn(host: string): Promise<void> {
    this.#refuseLateHosts();
    if (this.#waiting.length >= maxWaiting) return Promise.reject(queueTooLong(host));
    return new Promise((start, reject) => {
      const refuse = () => reject(queueTooLong(host));
      this.#waiting.push({ since: this.#clock.monotonic(), start, refuse });
    });
  }

  #startNext(): void {
    this.#refuseLateHosts();
    const next = this.#waiting.shift();
    if (!next) return;
    this.#running++;
    next.start();
  }

  #refuseLateHosts(): void {
    const oldest = this.#clock.monotonic() - maxWait;
    while (this.#waiting.length > 0 && this.#waiting[0]!.since < oldest) this.#waiting.shift()!.refuse();
  }
}

const queueTooLong = (host: string) =>
  Object.assign(
    new Error(`The host ${host} cannot be looked up, because other look-ups are too many or too slow`),
    {
      code: 'EAI_AGAIN',
    },
  );
