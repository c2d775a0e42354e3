import type { AccountLifecycle } from '../../accounts/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { type AnyWriter, type Database, type FullText, writerFor } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { Publish } from '../../kernel/streams/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { DirectoryTables } from '../tables.ts';
import { deleteUser, userTexts, writeUser } from './store.ts';

/** What is asked about the users of this server; declared here, supplied at composition. */
export interface DirectoryPeople {
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

/** Milliseconds that a search waits at most. */
const patience = 5_000;

/**
 * Keeps the entries of this server's users: a job is ordered in the transaction that makes, changes or closes an
 * account, so that no change is missed.
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

  /** Registers how the jobs are done; before jobs are started. */
  register(people: DirectoryPeople): void {
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

  /** Part of the transaction that changes a profile. */
  profileChanged(writer: AnyWriter, userId: string): Promise<void> {
    return this.#jobs.schedule(writer, {
      kind: job,
      key: userId,
      payload: userId,
      runAt: this.#clock.now(),
    });
  }

  /** Resolves when the entries tell of all that has been changed until now, or when that takes too long. */
  caughtUp(): Promise<void> {
    return this.#jobs.attempted(job, undefined, patience);
  }

  async #update(people: DirectoryPeople, userId: string): Promise<void> {
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

/** Names and avatars that are nothing but text. */
export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
