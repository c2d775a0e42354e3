import type { Devices, LastSeen } from '../devices/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Jobs } from '../kernel/jobs/index.ts';
import type { Sessions } from './sessions/sessions.ts';

export interface HousekeepingDeps {
  readonly clock: Clock;
  readonly sessions: Sessions;
  readonly devices: Devices;
  readonly lastSeen: LastSeen;
}

/** Milliseconds between two rounds, and that an expired token is kept to be answered with `soft_logout`. */
const [interval, expiredKept] = [24 * 3_600_000, 30 * 24 * 3_600_000];

/** Clears out what nobody can use any more. */
export class Housekeeping {
  readonly #deps: HousekeepingDeps;
  readonly #staleAfter: number | null;

  /** @param options `delete_stale_devices_after`: milliseconds, null to keep devices for ever */
  constructor(deps: HousekeepingDeps, options: { delete_stale_devices_after: number | null }) {
    this.#deps = deps;
    this.#staleAfter = options.delete_stale_devices_after;
  }

  /** Has it done once a day, however often the server is started; call it before the jobs start. */
  register(jobs: Jobs): void {
    jobs.every('accounts/housekeeping', interval, { run: () => this.run() });
  }

  /** One round. */
  async run(): Promise<void> {
    const { clock, devices, lastSeen, sessions } = this.#deps;
    await lastSeen.flush();
    await sessions.removeExpired(clock.now() - expiredKept);
    if (this.#staleAfter !== null) await devices.removeStale(clock.now() - this.#staleAfter);
  }
}
