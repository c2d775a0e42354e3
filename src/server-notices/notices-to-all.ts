import { hash } from 'node:crypto';
import { countRegularUsers, readRegularUsers } from '../accounts/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import {
  type Job,
  type JobAttempt,
  type JobProgress,
  type JobStatus,
  type Jobs,
  jobFailure,
  jobStatus,
} from '../kernel/jobs/index.ts';
import { KeyedMutex } from '../kernel/keyed-mutex.ts';
import { type Randomness, randomLetters } from '../kernel/randomness.ts';
import { invalidParam, type JsonObject, MatrixError, notFound } from '../protocol/index.ts';
import { isStorableText } from '../room-engine/index.ts';
import { checkNoticeToAll, isAboutRecipient } from './notice-to-all-check.ts';
import type { SendNoticeOptions, ServerNotices } from './server-notices.ts';

export interface NoticesToAllDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly jobs: Jobs;
  readonly randomness: Randomness;
  readonly notices: Pick<ServerNotices, 'send' | 'check'>;
}

export interface NoticeToAllStatus {
  readonly status: JobStatus;
  /** Why the whole notice failed. */
  readonly error: string | undefined;
  /**
   * Number of recipients when the notice was scheduled; `sent` and `failed` do not count users who were deactivated
   * later.
   */
  readonly total: number;
  readonly sent: number;
  readonly failed: number;
  /** Error messages by user id, for the first users to whom the notice could not be sent. */
  readonly failedUsers: Readonly<Record<string, string>>;
}

const job = 'server-notices/send-to-all';

/** The status of a completed or cancelled notice can be read for this many milliseconds. */
const statusLifetime = 7 * 24 * 3_600_000;

/** Number of users who are read at once, and to whom the notice is sent between two writes of the progress. */
const usersPerPage = 20;

/** Maximum number of users whose errors are stored. */
const maxErrors = 100;

/** The payload of the job: the notice and its progress. */
type Progress = {
  readonly noticeId: string;
  readonly type: string;
  readonly content: JsonObject;
  /** Users who are registered later do not receive the notice. In milliseconds since the epoch. */
  readonly registeredUntil: number;
  readonly total: number;
  /** The last user who was handled; empty before the first. */
  readonly after: string;
  readonly sent: number;
  readonly failed: number;
  /** Error messages by user id, of at most `maxErrors` users. */
  readonly failedUsers: Readonly<Record<string, string>>;
};

/**
 * Sends a notice on behalf of an administrator to all active users, except guests and users of application services.
 * Each such notice is a job, so that it continues after a restart. A transaction id for each user prevents a second
 * notice when the server stops before the progress is stored.
 */
export class NoticesToAll {
  readonly #deps: NoticesToAllDeps;
  /** Schedules one notice at a time for each id. */
  readonly #scheduling = new KeyedMutex();

  /** Registers the job; the constructor must be called before jobs are started. */
  constructor(deps: NoticesToAllDeps) {
    this.#deps = deps;
    deps.jobs.register<Progress>(job, {
      run: (attempt) => this.#run(attempt),
      parallel: 1,
      keep: statusLifetime,
      progressOf,
    });
  }

  /**
   * Schedules a notice to all users.
   * @param once identifies the request: a repeated request returns the id of the first notice, as long as the status of
   * that notice can be read
   * @returns the id of the notice
   * @throws MatrixError M_UNKNOWN (400) when notices are disabled, M_BAD_JSON, M_INVALID_PARAM, M_TOO_LARGE
   */
  async schedule(type: string, content: JsonObject, once?: SendNoticeOptions['once']): Promise<string> {
    this.#deps.notices.check(type);
    checkNoticeToAll(type, content);
    const noticeId = once ? noticeIdOf(once) : randomLetters(this.#deps.randomness, 16);
    await this.#scheduling.run(noticeId, () => this.#scheduleOnce(noticeId, type, content));
    return noticeId;
  }

  async #scheduleOnce(noticeId: string, type: string, content: JsonObject): Promise<void> {
    if ((await this.status(noticeId)) !== undefined) return;
    const { database, jobs, clock } = this.#deps;
    const now = clock.now();
    const total = await countRegularUsers(database, now);
    const payload: Progress = {
      noticeId,
      type,
      content,
      registeredUntil: now,
      total,
      after: '',
      sent: 0,
      failed: 0,
      failedUsers: {},
    };
    await database.transaction((writer) =>
      jobs.schedule(writer, { kind: job, key: noticeId, payload, runAt: now }),
    );
  }

  /**
   * Cancels a notice: it is sent to no further users, except one to whom it is being sent. Has no effect on a cancelled
   * notice.
   * @throws MatrixError M_NOT_FOUND for unknown ids, M_UNKNOWN (400) for a notice that is complete or has failed
   */
  async cancel(noticeId: string): Promise<void> {
    const { database, jobs } = this.#deps;
    if (await database.transaction((writer) => jobs.cancel(writer, job, noticeId, statusLifetime))) return;
    const found = await this.status(noticeId);
    if (found === undefined) throw notFound('Unknown notice_id');
    if (found.status !== 'cancelled')
      throw new MatrixError(400, 'M_UNKNOWN', 'The notice is already complete or has failed');
  }

  /**
   * Returns the status of a notice; `undefined` for unknown ids and a week after it was sent to the last user or
   * cancelled.
   */
  async status(noticeId: string): Promise<NoticeToAllStatus | undefined> {
    const [found] = await this.#deps.jobs.list({ kind: job, key: noticeId, limit: 1 });
    return found && statusOf(found);
  }

  async #run({ payload, signal, progress, isCancelled }: JobAttempt<Progress>): Promise<void> {
    let state = payload;
    for (let hasMore = true; hasMore; ) {
      const { after, registeredUntil } = state;
      const page = { after, registeredUntil, limit: usersPerPage };
      const users = await readRegularUsers(this.#deps.database, page);
      hasMore = users.length === usersPerPage;
      for (const userId of users) {
        if (signal.aborted) await progress(state);
        signal.throwIfAborted();
        if (await isCancelled()) {
          hasMore = false;
          break;
        }
        state = await this.#send(state, userId);
      }
      await progress(state);
    }
  }

  /** Sends the notice to one user. @returns the progress after it */
  async #send(state: Progress, userId: string): Promise<Progress> {
    const { noticeId, type, content } = state;
    // Not the id of a user, so that the transaction id is different from the transaction ids of requests.
    const once = { userId: `all users ${noticeId}`, deviceId: undefined, txnId: userId };
    try {
      await this.#deps.notices.send(userId, content, { type, once });
    } catch (error) {
      if (!(error instanceof MatrixError) || !isAboutRecipient(error)) throw error;
      const storesError = Object.keys(state.failedUsers).length < maxErrors;
      const failedUsers = storesError ? { ...state.failedUsers, [userId]: error.message } : state.failedUsers;
      return { ...state, after: userId, failed: state.failed + 1, failedUsers };
    }
    return { ...state, after: userId, sent: state.sent + 1 };
  }
}

/**
 * Returns the id of the notice of a request with a transaction id: the same for all repeated requests.
 * @throws MatrixError M_INVALID_PARAM
 */
function noticeIdOf({ userId, deviceId, txnId }: NonNullable<SendNoticeOptions['once']>): string {
  if (!isStorableText(txnId)) throw invalidParam('The transaction id contains invalid characters');
  return hash('sha256', JSON.stringify([userId, deviceId ?? null, txnId]), 'base64url');
}

const progressOf = ({ sent, failed, total }: Progress): JobProgress => ({ done: sent + failed, total });

function statusOf(found: Job): NoticeToAllStatus {
  const { total, sent, failed, failedUsers } = found.payload as Progress;
  return { status: jobStatus(found), error: jobFailure(found), total, sent, failed, failedUsers };
}
