import { countRegularUsers, readRegularUsers } from '../accounts/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Job, JobAttempt, JobProgress, Jobs } from '../kernel/jobs/index.ts';
import { type Randomness, randomLetters } from '../kernel/randomness.ts';
import {
  badJson,
  canonicalJson,
  fitsBytes,
  invalidParam,
  type JsonObject,
  MatrixError,
  tooLarge,
} from '../protocol/index.ts';
import { isStorableText } from '../room-engine/index.ts';
import type { ServerNotices } from './server-notices.ts';

export interface NoticesToAllDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly jobs: Jobs;
  readonly randomness: Randomness;
  readonly notices: Pick<ServerNotices, 'send' | 'check'>;
}

export interface NoticeToAllStatus {
  readonly status: 'scheduled' | 'active' | 'complete' | 'failed';
  readonly error: string | undefined;
  /** Number of recipients when the notice was scheduled; users deactivated since are neither sent nor failed. */
  readonly total: number;
  readonly sent: number;
  readonly failed: number;
  /** Error messages by user id, for the first users to whom the notice could not be sent. */
  readonly failedUsers: Readonly<Record<string, string>>;
}

const job = 'server-notices/send-to-all';

/** Milliseconds for which the status of a completed notice can be read. */
const statusLifetime = 7 * 24 * 3_600_000;

/** Number of users to whom the notice is sent between two writes of the progress. */
const usersAtOnce = 20;

/** Maximum number of users whose errors are stored. */
const maxErrors = 100;

/** Maximum bytes of the content: the other fields of an event need the rest of the 65,536 that an event may have. */
const maxContentBytes = 60_000;

/** Maximum bytes of the type of an event. */
const maxTypeBytes = 255;

type Outcome = {
  readonly sent: number;
  readonly failed: number;
  readonly failedUsers: Readonly<Record<string, string>>;
};

/** The payload of the job: the notice and its progress. */
type Progress = Outcome & {
  readonly noticeId: string;
  readonly type: string;
  readonly content: JsonObject;
  /** Users who are registered later do not get the notice. In milliseconds since the epoch. */
  readonly registeredUntil: number;
  readonly total: number;
  /** The last user who was handled; empty before the first. */
  readonly after: string;
};

/**
 * Sends a notice to all users for administrators: to active users, except guests and users of application services. Each
 * such notice is a job, so that it continues after a restart. A transaction id for each user prevents a second notice when
 * the server stops before the progress is stored.
 */
export class NoticesToAll {
  readonly #deps: NoticesToAllDeps;

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
   * @returns the id of the notice
   * @throws MatrixError M_UNKNOWN (400) when notices are disabled, M_BAD_JSON, M_INVALID_PARAM, M_TOO_LARGE
   */
  async schedule(type: string, content: JsonObject): Promise<string> {
    const { database, jobs, clock, randomness, notices } = this.#deps;
    notices.check(type);
    if (!isStorableText(type)) throw badJson('The type contains invalid characters');
    if (!fitsBytes(type, maxTypeBytes)) throw invalidParam(`The type may have at most ${maxTypeBytes} bytes`);
    if (!fitsBytes(canonicalJson(content), maxContentBytes))
      throw tooLarge(`The content of a notice to all users may have at most ${maxContentBytes} bytes`);
    const now = clock.now();
    const noticeId = randomLetters(randomness, 16);
    const total = await countRegularUsers(database, now);
    const payload: Progress = {
      ...{ noticeId, type, content, registeredUntil: now, total },
      ...{ after: '', sent: 0, failed: 0, failedUsers: {} },
    };
    await database.transaction((writer) =>
      jobs.schedule(writer, { kind: job, key: noticeId, payload, runAt: now }),
    );
    return noticeId;
  }

  /** Returns the status of a notice; `undefined` for unknown ids and a week after it was sent to the last user. */
  async status(noticeId: string): Promise<NoticeToAllStatus | undefined> {
    const [found] = await this.#deps.jobs.list({ kind: job, key: noticeId, limit: 1 });
    return found && statusOf(found);
  }

  async #run({ payload, signal, progress }: JobAttempt<Progress>): Promise<Outcome> {
    let state = payload;
    for (;;) {
      const users = await readRegularUsers(this.#deps.database, { ...state, limit: usersAtOnce });
      for (const userId of users) {
        if (signal.aborted) await progress(state);
        signal.throwIfAborted();
        state = await this.#send(state, userId);
      }
      await progress(state);
      if (users.length < usersAtOnce) break;
    }
    const { sent, failed, failedUsers } = state;
    return { sent, failed, failedUsers };
  }

  async #send(state: Progress, userId: string): Promise<Progress> {
    const { noticeId, type, content } = state;
    const next = { ...state, after: userId };
    const once = { userId: `all users ${noticeId}`, deviceId: undefined, txnId: userId };
    try {
      await this.#deps.notices.send(userId, content, { type, once });
    } catch (error) {
      if (!(error instanceof MatrixError) || !isAboutUser(error)) throw error;
      const isStored = Object.keys(state.failedUsers).length < maxErrors;
      const failedUsers = isStored ? { ...state.failedUsers, [userId]: error.message } : state.failedUsers;
      return { ...next, failed: state.failed + 1, failedUsers };
    }
    return { ...next, sent: state.sent + 1 };
  }
}

/**
 * Whether a notice failed because of its recipient, so that it can be sent to others. Where notices are turned off, the
 * errcode is M_UNKNOWN.
 */
const isAboutUser = ({ status, errcode }: MatrixError): boolean => status < 500 && errcode !== 'M_UNKNOWN';

const progressOf = ({ sent, failed, total }: Progress): JobProgress => ({ done: sent + failed, total });

function statusOf({ payload, state, running, attempts, error }: Job): NoticeToAllStatus {
  const { total, sent, failed, failedUsers } = payload as Progress;
  const waiting = running || attempts > 0 ? 'active' : 'scheduled';
  return {
    status: state === 'done' ? 'complete' : state === 'failed' ? 'failed' : waiting,
    error: state === 'failed' ? (error ?? 'unknown') : undefined,
    ...{ total, sent, failed, failedUsers },
  };
}
