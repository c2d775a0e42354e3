import type { Clock } from '../kernel/clock.ts';
import type { AnyWriter } from '../kernel/database/index.ts';
import type { Jobs } from '../kernel/jobs/index.ts';
import type { NoticeRooms } from './notice-rooms.ts';

const job = 'server-notices/close-room';

/** Closes the rooms of users who give their accounts up, so that nothing keeps them for ever. */
export class DepartedUsers {
  readonly #jobs: Jobs;
  readonly #clock: Clock;
  #isOn = false;

  constructor({ jobs, clock }: { readonly jobs: Jobs; readonly clock: Clock }) {
    this.#jobs = jobs;
    this.#clock = clock;
  }

  /** Says how the job is done; before jobs are started. @param noticeRooms absent: notices are off */
  register(noticeRooms: NoticeRooms | undefined): void {
    this.#isOn = noticeRooms !== undefined;
    this.#jobs.register<string>(job, {
      async run({ payload: userId }) {
        const roomId = await noticeRooms?.of(userId);
        if (roomId !== undefined) await noticeRooms?.close(roomId);
      },
    });
  }

  /** Part of the transaction that closes an account. */
  async deactivated(writer: AnyWriter, _publish: unknown, { userId }: { userId: string }): Promise<void> {
    if (!this.#isOn) return;
    await this.#jobs.schedule(writer, { kind: job, key: userId, payload: userId, runAt: this.#clock.now() });
  }
}
