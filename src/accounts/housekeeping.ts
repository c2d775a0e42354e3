import type { Devices, LastSeen } from '../devices/index.ts';
import type { Clock, Timer } from '../kernel/clock.ts';
import type { Logger } from '../kernel/observability/index.ts';
import type { Sessions } from './sessions/sessions.ts';

export interface HousekeepingDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly sessions: Sessions;
  readonly devices: Devices;
  readonly lastSeen: LastSeen;
}

/** Milliseconds between two rounds, and that an expired token is kept to be answered with `soft_logout`. */
const [interval, expiredKept] = [24 * 3_600_000, 30 * 24 * 3_600_000];

/** Once a day, clears out what nobody can use any more. */
export class Housekeeping {
  readonly #deps: HousekeepingDeps;
  readonly #staleAfter: number | null;
  #timer: Timer | undefined;
  #running: Promise<void> = Promise.resolve();

  /** @param options `delete_stale_devices_after`: milliseconds, null to keep devices for ever */
  constructor(deps: HousekeepingDeps, options: { delete_stale_devices_after: number | null }) {
    this.#deps = deps;
    this.#staleAfter = options.delete_stale_devices_after;
  }

  start(): void {
    this.#timer = this.#deps.clock.setTimer(interval, () => {
      this.start();
      this.#running = this.run();
    });
  }

  /** Waits for the round at work and writes what was noted about devices. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    await this.#running;
    await this.#deps.lastSeen.flush();
  }

  /** One round. Failures are logged: the next round tries again. */
  async run(): Promise<void> {
    const { clock, devices, lastSeen, log, sessions } = this.#deps;
    try {
      await lastSeen.flush();
      await sessions.removeExpired(clock.now() - expiredKept);
      if (this.#staleAfter !== null) await devices.removeStale(clock.now() - this.#staleAfter);
    } catch (error) {
      log.error({ err: error }, 'could not clear out old sessions and devices');
    }
  }
}
