import { offline, type PresenceSource, type PresenceStatus } from './presence-status.ts';

/** The presence of a user as another server or a module reported it, until it expires. */
export class ReportedPresence implements PresenceSource {
  readonly #status: PresenceStatus;
  readonly #until: number;

  /** @param until milliseconds since the epoch, may be `Infinity` */
  constructor(status: PresenceStatus, until: number) {
    this.#status = status;
    this.#until = until;
  }

  at(now: number): PresenceStatus {
    const { statusMsg, lastActive } = this.#status;
    return now < this.#until ? this.#status : { ...offline, statusMsg, lastActive };
  }

  nextChange(now: number): number | undefined {
    return now < this.#until && this.#until !== Number.POSITIVE_INFINITY ? this.#until : undefined;
  }
}
