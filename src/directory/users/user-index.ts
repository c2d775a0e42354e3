import type { AccountLifecycle } from '../../accounts/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { type AnyWriter, type Database, type FullText, writerFor } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { Publish } from '../../kernel/streams/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { DirectoryTables } from '../tables.ts';
import { deleteUser, userTexts, writeUser } from './store.ts';

/** Accounts and profiles of local users; implemented in composition. */
export interface DirectoryUsers {
  /** `undefined` when there is no such account. */
  account(userId: string): Promise<DirectoryAccount | undefined>;
  profile(userId: string): Promise<JsonObject>;
}

export interface DirectoryAccount {
  readonly isDeactivated: boolean;
  readonly isGuest: boolean;
  readonly isLocked: boolean;
  readonly userType: string | undefined;
}

const job = 'directory/local-user';

/** Maximum milliseconds that a search waits. */
const searchTimeout = 5_000;

/**
 * Updates the entries of local users: schedules a job in the transaction that creates, changes or deactivates
 * an account, so that no change is lost.
 */
export class UserIndex implements AccountLifecycle {
  readonly #jobs: Jobs;
  readonly #clock: Clock;
  readonly #database: Database;
  readonly #texts: FullText;

  constructor({ jobs, clock, database }: { jobs: Jobs; clock: Clock; database: Database }) {
    this.#jobs = jobs;
    this.#clock = clock;
    this.#database = database;
    this.#texts = database.fullText(userTexts);
  }

  /** Registers the job; to be called before jobs are started. */
  register(people: DirectoryUsers): void {
    this.#jobs.register<string>(job, { run: ({ payload: userId }) => this.#update(people, userId) });
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

  /** Runs in the transaction that changes a profile. */
  profileChanged(writer: AnyWriter, userId: string): Promise<void> {
    return this.#jobs.schedule(writer, {
      kind: job,
      key: userId,
      payload: userId,
      runAt: this.#clock.now(),
    });
  }

  /** Resolves when the entries include all changes until now, or after a timeout. */
  caughtUp(): Promise<void> {
    return this.#jobs.attempted(job, undefined, searchTimeout);
  }

  async #update(people: DirectoryUsers, userId: string): Promise<void> {
    const account = await people.account(userId);
    const { displayname, avatar_url } = await people.profile(userId);
    await this.#database.transaction(async (writer) => {
      const tables = writerFor<DirectoryTables>(writer);
      if (!account || account.isDeactivated || account.isGuest) {
        return deleteUser(tables, this.#texts, userId);
      }
      await writeUser(tables, this.#texts, {
        userId,
        displayName: textOf(displayname),
        avatarUrl: textOf(avatar_url),
      });
    });
  }
}

/** Returns names and avatars that are strings. */
export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
