import type { Clock, Timer } from '../clock.ts';
import type { Logger, Metrics } from '../observability/index.ts';
import type { PositionCounter } from './position-counter.ts';

/** Milliseconds for which a position may be pending before it is reported: far longer than any write takes. */
const limit = 10_000;

/** Maximum number of positions that one line of the log names. */
const maxNamed = 10;

/**
 * Reports positions that stay pending, each once: while one is pending, no client receives a later fact.
 */
export class PendingWatch {
  readonly #counter: PositionCounter;
  readonly #clock: Clock;
  readonly #log: Logger;
  #timer: Timer | undefined;
  /** Every position up to this one has been reported if it stayed pending for too long. */
  #reported = 0;

  constructor(
    counter: PositionCounter,
    { clock, log, metrics }: { clock: Clock; log: Logger; metrics?: Metrics | undefined },
  ) {
    this.#counter = counter;
    this.#clock = clock;
    this.#log = log;
    if (metrics) this.#measure(metrics);
  }

  /** Begins to watch, unless it watches already. Must be called for each reserved position. */
  watch(): void {
    this.#timer ??= this.#clock.setTimer(limit, () => this.#checkPending());
  }

  #checkPending(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    const pending = this.#counter.pendingAbove(this.#reported);
    const late = pending.filter(({ reservedAt }) => now - reservedAt >= limit);
    const [oldest] = late;
    if (oldest) {
      this.#reported = late.at(-1)?.position ?? this.#reported;
      const positions = late.slice(0, maxNamed).map(({ position }) => position);
      this.#log.error(
        { count: late.length, positions, stream: oldest.purpose, pendingMs: now - oldest.reservedAt },
        'Stream positions stay pending: clients receive no later facts',
      );
    }
    const next = pending[late.length];
    if (next) this.#timer = this.#clock.setTimer(next.reservedAt + limit - now, () => this.#checkPending());
  }

  #measure(metrics: Metrics): void {
    const age = () => {
      const oldest = this.#counter.oldestPending;
      return oldest ? (this.#clock.monotonic() - oldest.reservedAt) / 1_000 : 0;
    };
    metrics.gauge({
      name: 'server_stream_pending_seconds',
      help: 'Age of the oldest stream position that clients wait for: of a write in progress, or above the bound on disk.',
      collect() {
        this.set(age());
      },
    });
  }
}
