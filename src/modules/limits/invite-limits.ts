import type { Clock } from '../../kernel/clock.ts';
import { RateLimiter } from '../../kernel/rate-limits/index.ts';
import type { ActionLimit, InviteLimits, RoomLimits } from '../../rooms/index.ts';
import type { ModuleRateLimit, RateLimitRules } from '../api/index.ts';
import { firstAnswer } from '../calls/call-all.ts';
import type { ModuleCalls } from '../calls/module-calls.ts';
import type { ModuleCallbacks, RegisteredCallbacks } from '../registered-callbacks.ts';

/**
 * Maximum number of different limits whose counters are in memory. When a further limit appears, all counters begin
 * again.
 */
const maxLimits = 1_000;

const limiterNames = ['per_room', 'per_user', 'per_issuer'] as const;

/** A limit that allows all actions. */
const unlimited: ActionLimit = { take() {}, check() {} };

/** Rate limits of invites that modules choose for single users. */
export class ModuleInviteLimits {
  readonly #calls: ModuleCalls;
  readonly #clock: Clock;
  readonly #registered: readonly ModuleCallbacks<NonNullable<RateLimitRules['limitOf']>>[];
  /** The counters of each limit that modules have chosen, by the name of the limiter and the values of the limit. */
  readonly #limiters = new Map<string, RateLimiter>();

  constructor(callbacks: RegisteredCallbacks, calls: ModuleCalls, clock: Clock) {
    this.#calls = calls;
    this.#clock = clock;
    this.#registered = callbacks.with('rateLimits', 'limitOf');
  }

  /**
   * Returns a function that finds the limits of a user's invites; `undefined` where no module chooses limits.
   * @param defaultLimits the limits that apply to users for whom no module chooses limits
   */
  limitsWithDefaults(defaultLimits: InviteLimits): RoomLimits['inviteLimitsOf'] {
    if (this.#registered.length === 0) return undefined;
    return async (userId) => {
      const limits = limiterNames.map(async (name) => [
        name,
        (await this.#limitOf(userId, name)) ?? defaultLimits[name],
      ]);
      return Object.fromEntries(await Promise.all(limits)) as InviteLimits;
    };
  }

  async #limitOf(userId: string, name: keyof InviteLimits): Promise<ActionLimit | undefined> {
    const limit = await firstAnswer(
      this.#calls,
      'limitOf',
      this.#registered,
      (find) => find(userId, `rc_invites.${name}`),
      isRateLimit,
    );
    if (limit === undefined) return undefined;
    const { perSecond, burst } = limit;
    if (perSecond === 0) return unlimited;
    const key = `${name} ${perSecond} ${burst}`;
    const known = this.#limiters.get(key);
    if (known) return known;
    if (this.#limiters.size >= maxLimits) this.#limiters.clear();
    const limiter = new RateLimiter({ per_second: perSecond, burst_count: burst }, this.#clock);
    this.#limiters.set(key, limiter);
    return limiter;
  }
}

const isRateLimit = ({ perSecond, burst }: Partial<ModuleRateLimit>): boolean =>
  typeof perSecond === 'number' && perSecond >= 0 && typeof burst === 'number' && burst >= 0;
