import type { Devices } from '../../devices/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { AnyWriter, Database } from '../../kernel/database/index.ts';
import type { JobAttempt, Jobs } from '../../kernel/jobs/index.ts';
import type { StreamWriter } from '../../kernel/streams/index.ts';
import type { JsonValue } from '../../protocol/index.ts';
import type { RemoteKeys } from '../remote-keys/remote-keys.ts';
import { withTimeout } from '../remote-keys/timeout.ts';
import type { E2eeTables } from '../tables.ts';
import { parseUserDevices } from './parse-updates.ts';
import type { RemoteListWithDevices, RemoteSnapshot } from './remote-list.ts';
import type { RemotelyQueriedUsers } from './remotely-queried-users.ts';
import type { SharedRooms } from './shared-rooms.ts';
import { deleteList, readList, readLists, replaceList, staleUsers } from './store.ts';

export interface ResyncDeps {
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly clock: Clock;
  readonly jobs: Jobs;
  readonly devices: Devices;
  readonly remote: RemoteKeys;
  readonly sharedRooms: SharedRooms;
  readonly remotelyQueried: RemotelyQueriedUsers;
}

const kind = 'e2ee/fetch-device-list';

/** Milliseconds to wait for a response. */
const timeout = 30_000;

/**
 * Milliseconds from an update of a list that is being fetched until the list is fetched again. All updates in this time
 * cause one fetch.
 */
const refetchDelay = 2_000;

/** Maximum number of parallel fetches. It is smaller than the number of parallel jobs, so that other work also runs. */
const parallel = 2;

/**
 * Milliseconds from a failed attempt to the next one: half a minute, doubling up to half a day, so that the twenty
 * attempts of a job take about five days. `fetchNow` does not wait for the backoff when a server can be reached again.
 */
const backoff = (attempt: number) => Math.min(30_000 * 2 ** (attempt - 1), 43_200_000);

/** Maximum number of lists that `fetchNow` schedules in one transaction. */
const pageSize = 500;

/**
 * Fetches stale device lists of remote users. Each list has its own job. The job is repeated until it succeeds, also
 * after a restart.
 */
export class Resync {
  readonly #deps: ResyncDeps;
  /** Milliseconds since the epoch. */
  readonly #startedAt: number;

  /** Registers the job; the constructor must be called before jobs are started. */
  constructor(deps: ResyncDeps) {
    this.#deps = deps;
    this.#startedAt = deps.clock.now();
    deps.jobs.register(kind, { run: (attempt) => this.#run(attempt), parallel, backoff });
  }

  /**
   * Schedules the fetch of a stale list inside the caller's transaction.
   * @param wasStale whether the list was stale before, so that its fetch is scheduled or running already
   */
  schedule(writer: AnyWriter, userId: string, wasStale = false): Promise<void> {
    const runAt = this.#deps.clock.now() + (wasStale ? refetchDelay : 0);
    return this.#deps.jobs.schedule(writer, { kind, key: userId, payload: null, runAt });
  }

  /** Fetches the stale lists of a server now. */
  async fetchNow(server: string): Promise<void> {
    const { database, jobs, clock } = this.#deps;
    for (let after = ''; ; ) {
      const page = await staleUsers(database.reader<E2eeTables>(), server, after, pageSize);
      if (page.length === 0) return;
      const runAt = clock.now();
      await database.transaction<E2eeTables, void>(async (writer) => {
        for (const key of page)
          await jobs.schedule(writer, { kind, key, payload: null, runAt, replace: true });
      });
      after = page.at(-1)!;
    }
  }

  async #run({ key: userId, signal }: JobAttempt<JsonValue>): Promise<void> {
    const { database, clock, remote, sharedRooms } = this.#deps;
    const [list] = userId === null ? [] : await readLists(database.reader<E2eeTables>(), [userId]);
    if (!list?.stale) return;
    if (!(await sharedRooms.isSharing(list.userId))) {
      await database.transaction<E2eeTables, void>((writer) => deleteList(writer, list.userId));
      return;
    }
    const answer = await withTimeout(clock, timeout, (timeoutSignal) =>
      remote.devices(list.server, list.userId, { timeout, signal: AbortSignal.any([timeoutSignal, signal]) }),
    );
    const snapshot = parseUserDevices(answer, list.userId);
    if (!snapshot) throw new Error('malformed response to GET /user/devices/{userId}');
    await this.#store(list, snapshot);
  }

  async #store(previous: RemoteListWithDevices, snapshot: RemoteSnapshot): Promise<void> {
    const { streams, devices, remotelyQueried } = this.#deps;
    const { userId, revision } = previous;
    await streams.write<E2eeTables, void>(async (writer, publish) => {
      const current = await readList(writer, userId);
      if (!current) return;
      await replaceList(writer, userId, snapshot, current.revision !== revision);
      // Clients that have not queried the user's keys need no device list change for the first list. This process does
      // not know the queries to an earlier process: a first list that was created before this process started (its
      // first revision is the time of its creation) counts as queried.
      const isFirst = previous.streamIds.length === 0 && previous.devices.size === 0;
      const wasQueried = remotelyQueried.take(userId) || (isFirst && revision < this.#startedAt);
      const hasChanged = wasQueried || (!isFirst && isDifferent(previous, snapshot));
      if (hasChanged) await devices.recordListChange(writer, publish, userId);
    });
  }
}

function isDifferent(previous: RemoteSnapshot, next: RemoteSnapshot): boolean {
  const textOf = ({ masterKey, selfSigningKey, devices }: RemoteSnapshot) =>
    JSON.stringify([
      masterKey ?? null,
      selfSigningKey ?? null,
      [...devices].sort(([firstId], [secondId]) => (firstId < secondId ? -1 : 1)),
    ]);
  return textOf(previous) !== textOf(next);
}
