import type { Devices } from '../../devices/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { AnyWriter, Database } from '../../kernel/database/index.ts';
import type { JobAttempt, Jobs } from '../../kernel/jobs/index.ts';
import type { StreamWriter } from '../../kernel/streams/index.ts';
import type { JsonValue } from '../../protocol/index.ts';
import type { RemoteKeys } from '../keys/remote-keys.ts';
import { withTimeout } from '../keys/timeout.ts';
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

/** Milliseconds for an answer. */
const timeout = 30_000;

/** Milliseconds before a list is fetched that is being fetched already, however often it changes meanwhile. */
const pause = 2_000;

/** How many lists are fetched at a time: of the few jobs that run together, some are left for others. */
const parallel = 2;

/**
 * Milliseconds after a failed attempt: from half a minute, doubling to half a day, which makes a week of twenty
 * attempts. A server that was away and is back is asked at once: see `hasten`.
 */
const backoff = (attempt: number) => Math.min(30_000 * 2 ** (attempt - 1), 43_200_000);

/** How many lists are hastened at a time. */
const pageSize = 500;

/**
 * Fetches the device lists of users of other servers that can not be relied on: each by itself, again and again until
 * it succeeds, also after a restart.
 */
export class Resync {
  readonly #deps: ResyncDeps;
  /** Milliseconds since the epoch. */
  readonly #startedAt: number;

  /** Before `jobs` are started. */
  constructor(deps: ResyncDeps) {
    this.#deps = deps;
    this.#startedAt = deps.clock.now();
    deps.jobs.register(kind, { run: (attempt) => this.#run(attempt), parallel, backoff });
  }

  /**
   * Orders a list that is marked as stale, inside the caller's transaction.
   * @param wasStale whether it was before: then it is ordered already, or being fetched
   */
  schedule(writer: AnyWriter, userId: string, wasStale = false): Promise<void> {
    const runAt = this.#deps.clock.now() + (wasStale ? pause : 0);
    return this.#deps.jobs.schedule(writer, { kind, key: userId, payload: null, runAt });
  }

  /** Fetches at once what could not be fetched from a server. */
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
    const answer = await withTimeout(clock, timeout, (late) =>
      remote.devices(list.server, list.userId, { timeout, signal: AbortSignal.any([late, signal]) }),
    );
    const snapshot = parseUserDevices(answer, list.userId);
    if (!snapshot) throw new Error('the devices of a user make no sense');
    await this.#store(list, snapshot);
  }

  async #store(before: RemoteListWithDevices, snapshot: RemoteSnapshot): Promise<void> {
    const { streams, devices, remotelyQueried } = this.#deps;
    const { userId, revision } = before;
    await streams.write<E2eeTables, void>(async (writer, publish) => {
      const now = await readList(writer, userId);
      if (!now) return;
      await replaceList(writer, userId, snapshot, now.revision !== revision);
      // Who was told of nothing and has not asked will ask, and gets this answer. Nobody knows who asked before a
      // restart, and the revision is the time at which the list was begun.
      const isFirst = before.streamIds.length === 0 && before.devices.size === 0;
      const wasAsked = remotelyQueried.take(userId) || (isFirst && revision < this.#startedAt);
      const isNews = wasAsked || (!isFirst && isDifferent(before, snapshot));
      if (isNews) await devices.recordListChange(writer, publish, userId);
    });
  }
}

function isDifferent(before: RemoteSnapshot, after: RemoteSnapshot): boolean {
  const textOf = ({ masterKey, selfSigningKey, devices }: RemoteSnapshot) =>
    JSON.stringify([
      masterKey ?? null,
      selfSigningKey ?? null,
      [...devices].sort(([one], [other]) => (one < other ? -1 : 1)),
    ]);
  return textOf(before) !== textOf(after);
}
