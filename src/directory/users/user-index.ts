import { type Database, type FullText, writerFor } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { DirectoryTables } from '../tables.ts';
import { deleteUser, userTexts, writeUser } from './store.ts';
import { userIndexJob } from './user-index-jobs.ts';

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

/** Maximum milliseconds that a search waits until the entries are up to date. */
const searchTimeout = 5_000;

export interface UserIndexDeps {
  readonly database: Database;
  readonly jobs: Jobs;
  readonly localUsers: DirectoryUsers;
}

/** Updates the entries of local users when the jobs that `UserIndexJobs` schedules are due. */
export class UserIndex {
  readonly #deps: UserIndexDeps;
  readonly #texts: FullText;

  /** Registers the job. Must be called before jobs are started. */
  constructor(deps: UserIndexDeps) {
    this.#deps = deps;
    this.#texts = deps.database.fullText(userTexts);
    deps.jobs.register<string>(userIndexJob, { run: ({ payload: userId }) => this.#update(userId) });
  }

  /** Resolves when the entries include all changes before the call, or after a timeout. */
  caughtUp(): Promise<void> {
    return this.#deps.jobs.attempted(userIndexJob, undefined, searchTimeout);
  }

  /** Writes the entry of a local user again. */
  rewrite(userId: string): Promise<void> {
    return this.#update(userId);
  }

  async #update(userId: string): Promise<void> {
    const { database, localUsers } = this.#deps;
    const account = await localUsers.account(userId);
    const { displayname, avatar_url } = await localUsers.profile(userId);
    await database.transaction(async (writer) => {
      const tables = writerFor<DirectoryTables>(writer);
      if (!account || account.isDeactivated || account.isGuest) {
        return deleteUser(tables, this.#texts, userId);
      }
      await writeUser(tables, this.#texts, {
        userId,
        displayName: nameOf(displayname),
        avatarUrl: avatarUrlOf(avatar_url),
      });
    });
  }
}

/** Maximum characters of a name in the directory: a search compares thousands of names. */
const maxNameLength = 500;

/** Maximum characters of an avatar URL in the directory. */
const maxUrlLength = 500;

/** Returns a display name, at most its first 500 characters; `undefined` when it is empty or not a string. */
export const nameOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value.slice(0, maxNameLength).toWellFormed() : undefined;

/** Returns an avatar URL; `undefined` when it is empty, not a string, or has more than 500 characters. */
export const avatarUrlOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' && value.length <= maxUrlLength ? value : undefined;
