import { type Clock, sleep } from '../clock.ts';

/** Jobs of one kind and key that were scheduled and not attempted since. */
interface Pending {
  /** How often they were scheduled. */
  count: number;
  /** Whether a wait for these jobs has timed out: later waits skip them. */
  isSlow: boolean;
  readonly attempted: PromiseWithResolvers<void>;
}

/** Maximum number of keys per kind that are tracked; waits for other keys resolve at once. */
const maxKeys = 10_000;

/**
 * Lets callers wait until the jobs that this process has scheduled were attempted once. The records are in memory only:
 * when they are lost, waits end too early, and nothing else changes.
 */
export class FirstAttempts {
  readonly #clock: Clock;
  /** Jobs whose first attempt has not ended, by kind and key. */
  readonly #kinds = new Map<string, Map<string, Pending>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Records that a job of this kind and key is on disk and due. */
  scheduled(kind: string, key: string): void {
    const keys = this.#kinds.get(kind) ?? new Map<string, Pending>();
    this.#kinds.set(kind, keys);
    const pending = keys.get(key) ?? { count: 0, isSlow: false, attempted: Promise.withResolvers<void>() };
    pending.count++;
    pending.isSlow = false;
    if (keys.size < maxKeys) keys.set(key, pending);
  }

  /**
   * Records that an attempt begins.
   * @returns a function to call when the attempt has ended, in success or failure; keys that were scheduled meanwhile
   * stay pending
   */
  begin(kind: string, key: string): () => void {
    const pending = this.#kinds.get(kind)?.get(key);
    const countAtBegin = pending?.count;
    return () => {
      if (pending?.count === countAtBegin) this.#settle(kind, key, pending);
    };
  }

  /** Records that the job was cancelled. */
  cancelled(kind: string, key: string): void {
    this.#settle(kind, key, this.#kinds.get(kind)?.get(key));
  }

  /**
   * Resolves when the jobs that were scheduled before this call have been attempted.
   * @param key by default all keys of the kind
   * @param timeout maximum wait in milliseconds; later calls do not wait for jobs that took longer, until these jobs
   * are scheduled again
   */
  async attempted(kind: string, key: string | undefined, timeout: number): Promise<void> {
    const waitedFor = [...(this.#kinds.get(kind) ?? [])].filter(
      ([name, { isSlow }]) => !isSlow && (key === undefined || name === key),
    );
    if (waitedFor.length === 0) return;
    const waiting = new AbortController();
    const timedOut = sleep(this.#clock, timeout, waiting.signal).then(() => {
      if (!waiting.signal.aborted) for (const [, pending] of waitedFor) pending.isSlow = true;
    });
    await Promise.race([Promise.all(waitedFor.map(([, { attempted }]) => attempted.promise)), timedOut]);
    waiting.abort();
  }

  #settle(kind: string, key: string, pending: Pending | undefined): void {
    const keys = this.#kinds.get(kind);
    if (pending && keys?.get(key) === pending) keys.delete(key);
    pending?.attempted.resolve();
  }
}
