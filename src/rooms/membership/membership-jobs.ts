import type { Clock } from '../../kernel/clock.ts';
import type { AnyWriter } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';

/** Kind of the job that copies a changed profile to the user's memberships; the payload is the user id. */
export const profileJob = 'rooms/profile';

/** Kind of the job that makes a deactivated user leave all rooms; the payload is the user id. */
export const leaveAllJob = 'rooms/departure';

/**
 * Maximum wait of a request for its changes to reach the rooms, in milliseconds. A user may be in many rooms;
 * the job continues after the response.
 */
const maxWait = 5_000;

/**
 * Schedules the changes of memberships that follow from a change of an account or a profile, in the transaction of
 * that change. `runMembershipJobs` runs them.
 */
export class MembershipJobs {
  readonly #jobs: Jobs;
  readonly #clock: Clock;

  constructor({ jobs, clock }: { readonly jobs: Jobs; readonly clock: Clock }) {
    this.#jobs = jobs;
    this.#clock = clock;
  }

  /** Schedules the update of the user's rooms in the transaction that changes the profile. */
  profileChanged(writer: AnyWriter, userId: string): Promise<void> {
    return this.#schedule(writer, profileJob, userId);
  }

  /** Resolves when the first attempt to update the user's rooms has ended, or after `maxWait`. */
  profilePropagated(userId: string): Promise<void> {
    return this.#jobs.attempted(profileJob, userId, maxWait);
  }

  /** Makes the user leave all rooms: schedules the job in the transaction that deactivates the account. */
  deactivated(writer: AnyWriter, _publish: unknown, { userId }: { readonly userId: string }): Promise<void> {
    return this.#schedule(writer, leaveAllJob, userId);
  }

  /** Resolves when the first attempt to make the deactivated user leave all rooms has ended, or after `maxWait`. */
  settled(userId: string): Promise<void> {
    return this.#jobs.attempted(leaveAllJob, userId, maxWait);
  }

  #schedule(writer: AnyWriter, kind: string, userId: string): Promise<void> {
    return this.#jobs.schedule(writer, { kind, key: userId, payload: userId, runAt: this.#clock.now() });
  }
}
