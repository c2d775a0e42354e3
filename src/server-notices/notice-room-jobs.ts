import type { Clock } from '../kernel/clock.ts';
import { type AnyWriter, writerFor } from '../kernel/database/index.ts';
import type { Jobs } from '../kernel/jobs/index.ts';
import { type ClosingDeps, closeRoom } from './close-room.ts';
import { readNoticeRoom } from './store.ts';
import type { ServerNoticeTables } from './tables.ts';

const job = 'server-notices/close-room';

/** Schedules the closing of the notice rooms of deactivated users, so that the rooms can be purged. */
export class NoticeRoomJobs {
  readonly #jobs: Jobs;
  readonly #clock: Clock;

  constructor({ jobs, clock }: { readonly jobs: Jobs; readonly clock: Clock }) {
    this.#jobs = jobs;
    this.#clock = clock;
  }

  /** Schedules the job for a user's notice room, in the transaction that deactivates the account. */
  async deactivated(writer: AnyWriter, _publish: unknown, { userId }: { userId: string }): Promise<void> {
    const roomId = await readNoticeRoom(writerFor<ServerNoticeTables>(writer), userId);
    if (roomId === undefined) return;
    await this.#jobs.schedule(writer, { kind: job, key: userId, payload: roomId, runAt: this.#clock.now() });
  }
}

/** Registers the job that closes notice rooms. Must be called before jobs are started. */
export function runNoticeRoomJobs(jobs: Jobs, rooms: ClosingDeps): void {
  jobs.register<string>(job, { run: ({ payload: roomId }) => closeRoom(rooms, roomId) });
}
