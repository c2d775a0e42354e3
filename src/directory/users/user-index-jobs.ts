import type { AccountLifecycle } from '../../accounts/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { AnyWriter } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { Publish } from '../../kernel/streams/index.ts';

/** The kind of the jobs; the payload is the user id. */
export const userIndexJob = 'directory/local-user';

/**
 * Schedules jobs that update local users in the user directory. A job is scheduled in the transaction that creates,
 * changes or deactivates the account, so that no change is lost. `UserIndex` runs the jobs.
 */
export class UserIndexJobs implements AccountLifecycle {
  readonly #jobs: Jobs;
  readonly #clock: Clock;

  constructor({ jobs, clock }: { readonly jobs: Jobs; readonly clock: Clock }) {
    this.#jobs = jobs;
    this.#clock = clock;
  }

  async registered(writer: AnyWriter, _publish: Publish, account: { userId: string; isGuest: boolean }) {
    if (!account.isGuest) await this.profileChanged(writer, account.userId);
  }

  async upgraded(writer: AnyWriter, _publish: Publish, { userId }: { userId: string }) {
    await this.profileChanged(writer, userId);
  }

  async deactivated(writer: AnyWriter, _publish: Publish, { userId }: { userId: string }) {
    await this.profileChanged(writer, userId);
  }

  async reactivated(writer: AnyWriter, _publish: Publish, { userId }: { userId: string }) {
    await this.profileChanged(writer, userId);
  }

  /** Schedules the job of a user, in the transaction that changes the profile or the account. */
  profileChanged(writer: AnyWriter, userId: string): Promise<void> {
    return this.#jobs.schedule(writer, {
      kind: userIndexJob,
      key: userId,
      payload: userId,
      runAt: this.#clock.now(),
    });
  }
}
