import type { Devices, LastSeen } from '../devices/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Jobs } from '../kernel/jobs/index.ts';
import type { Sessions } from './sessions/sessions.ts';

export interface HousekeepingDeps {
  readonly jobs: Jobs;
  readonly clock: Clock;
  readonly sessions: Sessions;
  readonly devices: Devices;
  readonly lastSeen: LastSeen;
}

/** Milliseconds between two runs. */
const interval = 24 * 3_600_000;

/** Milliseconds for which an expired token is kept, so that the responses to requests with this token have `soft_logout`. */
const expiredTokenRetention = 30 * 24 * 3_600_000;

/** Deletes expired tokens and stale devices. */
export class Housekeeping {
  readonly #deps: HousekeepingDeps;
  readonly #staleDeviceAge: number | null;

  /**
   * Schedules a run once a day. Restarts do not delay it. Must be constructed before jobs are started.
   * @param options `delete_stale_devices_after`: milliseconds, null to store devices forever
   */
  constructor(deps: HousekeepingDeps, options: { delete_stale_devices_after: number | null }) {
    this.#deps = deps;
    this.#staleDeviceAge = options.delete_stale_devices_after;
    deps.jobs.every('accounts/housekeeping', interval, { run: () => this.run() });
  }

  /** Runs once. */
  async run(): Promise<void> {
    const { clock, devices, lastSeen, sessions } = this.#deps;
    await lastSeen.flush();
    await sessions.removeExpired(clock.now() - expiredTokenRetention);
    if (this.#staleDeviceAge !== null) await devices.removeStale(clock.now() - this.#staleDeviceAge);
  }
}
