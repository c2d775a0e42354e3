import type { Clock } from '../../kernel/clock.ts';
import type { AnyWriter } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { RoomsConfig } from '../config.ts';

export interface AutoJoinJobsDeps {
  readonly jobs: Jobs;
  readonly clock: Clock;
  readonly options: Pick<RoomsConfig, 'auto_join_rooms' | 'auto_join_rooms_for_guests'>;
  /**
   * Whether the user's account is the only account on the server besides guests; called in the transaction that creates
   * the account.
   */
  isFirst(writer: AnyWriter, userId: string): Promise<boolean>;
}

/** Kind of the job that joins a new user to rooms; its payload is an `AutoJoinPayload`. */
export const autoJoinJob = 'rooms/auto-join';

/** Maximum wait of a registration for the joins, in milliseconds. */
const maxWait = 5_000;

/** The payload of the job. */
export interface AutoJoinPayload {
  readonly [field: string]: string | boolean;
  readonly userId: string;
  /** Whether the user's account was the only one besides guests when it was created; false for guests. */
  readonly isFirst: boolean;
}

/**
 * Schedules the joins of new users to the rooms of `auto_join_rooms`, in the transaction that creates the account.
 * `AutoJoin` runs them.
 */
export class AutoJoinJobs {
  readonly #deps: AutoJoinJobsDeps;

  constructor(deps: AutoJoinJobsDeps) {
    this.#deps = deps;
  }

  /** Schedules the joins in the transaction that creates the account. */
  async registered(
    writer: AnyWriter,
    _publish: unknown,
    { userId, isGuest, appservice }: { userId: string; isGuest: boolean; appservice?: string | undefined },
  ): Promise<void> {
    const { jobs, clock, options, isFirst } = this.#deps;
    // An application service decides itself which rooms its users join.
    if (appservice !== undefined) return;
    if (options.auto_join_rooms.length === 0 || (isGuest && !options.auto_join_rooms_for_guests)) return;
    const payload = { userId, isFirst: !isGuest && (await isFirst(writer, userId)) };
    await jobs.schedule(writer, { kind: autoJoinJob, key: userId, payload, runAt: clock.now() });
  }

  /**
   * Schedules the joins of a guest who becomes a user, because a guest joins only the rooms that the options and the
   * rooms themselves allow.
   */
  upgraded(writer: AnyWriter, publish: unknown, { userId }: { userId: string }): Promise<void> {
    return this.registered(writer, publish, { userId, isGuest: false });
  }

  /** Resolves when the joins of a new user were attempted, or after `maxWait`. */
  settled(userId: string): Promise<void> {
    return this.#deps.jobs.attempted(autoJoinJob, userId, maxWait);
  }
}
