import { execFile } from 'node:child_process';
import type { Clock } from '../clock.ts';

/** Milliseconds that one notification may take. */
const timeout = 5_000;

/**
 * Sends one notification. Never rejects: when notifications fail, the service manager logs that and ends the server.
 * @param assignments for example `READY=1`
 */
export type Notify = (assignments: readonly string[]) => Promise<void>;

/**
 * Notifies systemd with its program `systemd-notify`, because Node has no Unix datagram sockets.
 * Source: systemd's manual, sd_notify(3).
 */
const notifySystemd: Notify = (assignments) =>
  new Promise((resolve) => {
    execFile('systemd-notify', assignments, { timeout }, () => resolve());
  });

/**
 * Notifies the service manager that started this process, if the environment names its socket: when the server is ready
 * and when it stops. If the service manager has a watchdog, it is notified regularly that the event loop is not blocked.
 */
export class ServiceManager {
  readonly #clock: Clock;
  readonly #notify: Notify | undefined;
  /** Milliseconds between two notifications of the watchdog; `undefined` without a watchdog. */
  readonly #interval: number | undefined;
  #isStopping = false;

  constructor(clock: Clock, environment: NodeJS.ProcessEnv, notify: Notify = notifySystemd) {
    this.#clock = clock;
    this.#notify = environment['NOTIFY_SOCKET'] ? notify : undefined;
    const watchdog = Number(environment['WATCHDOG_USEC']);
    const isOurs = Number(environment['WATCHDOG_PID'] ?? process.pid) === process.pid;
    // Half of the time after which the service manager restarts the server, as systemd recommends.
    if (isOurs && watchdog > 0) this.#interval = watchdog / 1000 / 2;
  }

  /** Notifies that the server takes requests. @param status one line for operators */
  async ready(status: string): Promise<void> {
    await this.#notify?.(['READY=1', `STATUS=${status}`]);
    this.#notifyWatchdog();
  }

  /** Notifies that the server stops, which may take some seconds. */
  async stopping(): Promise<void> {
    this.#isStopping = true;
    await this.#notify?.(['STOPPING=1', 'STATUS=Stopping']);
  }

  #notifyWatchdog(): void {
    if (this.#interval === undefined || !this.#notify) return;
    this.#clock.setTimer(this.#interval, async () => {
      if (this.#isStopping) return;
      await this.#notify?.(['WATCHDOG=1']);
      this.#notifyWatchdog();
    });
  }
}
