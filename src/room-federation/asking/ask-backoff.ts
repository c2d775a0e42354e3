import { RecentlyUsed } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';

/** Milliseconds: the first pause after a failure, the longest one, and how long an event may take for nothing. */
const times = { first: 10_000, longest: 10 * 60_000, slow: 2_000 } as const;

/** Pairs of a room and a server that are remembered. */
const maxRemembered = 10_000;

interface Pause {
  readonly until: number;
  readonly length: number;
}

/**
 * How much one server may hold up one room. A server that does not help is not asked again for a while, longer each
 * time; one whose events take long to complete has to wait with the next for as long as that took, so that at most half
 * of a room's time goes to it.
 */
export class AskBackoff {
  readonly #clock: Clock;
  readonly #pauses = new RecentlyUsed<string, Pause>({ max: maxRemembered });
  readonly #slow = new RecentlyUsed<string, number>({ max: maxRemembered });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Until when the server is not to be asked about the room; `undefined` when it may be. */
  askableAfter(roomId: string, server: string): number | undefined {
    return this.#later(this.#pauses.get(nameOf(roomId, server))?.until);
  }

  /** Until when events of the server wait that can not be completed without asking; `undefined` when they need not. */
  eventsWaitUntil(roomId: string, server: string): number | undefined {
    const turn = this.#slow.get(nameOf(roomId, server)) ?? 0;
    return this.#later(Math.max(turn, this.askableAfter(roomId, server) ?? 0));
  }

  recordFailure(roomId: string, server: string): void {
    const before = this.#pauses.get(nameOf(roomId, server))?.length ?? 0;
    const length = Math.min(Math.max(times.first, 2 * before), times.longest);
    this.#pauses.set(nameOf(roomId, server), { until: this.#clock.now() + length, length });
  }

  recordSuccess(roomId: string, server: string): void {
    this.#pauses.delete(nameOf(roomId, server));
  }

  /** An event of the server has had its turn. @param took milliseconds, all questions included */
  recordDuration(roomId: string, server: string, took: number): void {
    if (took >= times.slow) this.#slow.set(nameOf(roomId, server), this.#clock.now() + took);
  }

  #later(until: number | undefined): number | undefined {
    return until !== undefined && until > this.#clock.now() ? until : undefined;
  }
}

/** Neither may hold a space. */
const nameOf = (roomId: string, server: string) => `${roomId} ${server}`;
