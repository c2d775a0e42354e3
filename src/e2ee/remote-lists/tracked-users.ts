import type { Devices } from '../../devices/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { serverOfUser } from '../../protocol/index.ts';
import type { MembershipChange, RoomFact, RoomReader } from '../../room-engine/index.ts';
import type { E2eeTables } from '../tables.ts';
import type { SharedRooms } from './shared-rooms.ts';
import { deleteList, listedUsers, usersWithList } from './store.ts';

export interface TrackedUsersDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly jobs: Jobs;
  readonly devices: Devices;
  readonly engine: RoomReader;
  readonly serverName: string;
  readonly sharedRooms: SharedRooms;
  /** Schedules the fetch of missing device lists. */
  readonly fetchMissing: (userIds: readonly string[]) => Promise<void>;
}

const kind = 'e2ee/drop-device-lists';

/** Milliseconds between two checks of all device lists. */
const checkInterval = 86_400_000;

/** Number of users whose device lists are checked together. */
const pageSize = 200;

/**
 * Maximum number of users who join an encrypted room together and whose device lists are fetched at once. When more users
 * join together, each list is fetched when a client queries it.
 */
const maxPrefetched = 20;

/**
 * Deletes the device lists of remote users who share no room with a local user any more, because their servers stop
 * sending updates. Fetches the device lists of remote users who join an encrypted room. Checks all device lists at the
 * start and daily, because a crash may have prevented the processing of membership changes.
 */
export class TrackedUsers {
  readonly #deps: TrackedUsersDeps;
  /** Resolves when the membership changes so far are processed. */
  #work: Promise<void> = Promise.resolve();

  constructor(deps: TrackedUsersDeps) {
    this.#deps = deps;
    deps.jobs.register(kind, { run: () => this.#dropAllUnshared() });
    deps.jobs.every(`${kind}/daily`, checkInterval, { run: () => this.#dropAllUnshared() });
  }

  async start(): Promise<void> {
    const { engine, database, jobs, clock } = this.#deps;
    engine.stream.subscribe((fact) => this.#onRoomFact(fact));
    const job = { kind, key: 'start', payload: null, runAt: clock.now() };
    await database.transaction((writer) => jobs.schedule(writer, job));
  }

  async settled(): Promise<void> {
    let work: Promise<void>;
    do {
      work = this.#work;
      await work;
    } while (work !== this.#work);
  }

  #onRoomFact({ roomId, membershipChanges }: RoomFact): void {
    const changes = membershipChanges.filter(({ from, to }) => (from === 'join') !== (to === 'join'));
    const { log, serverName } = this.#deps;
    const isRelevant = ({ userId, to }: MembershipChange) =>
      to !== 'join' || serverOfUser(userId) !== serverName;
    if (!changes.some(isRelevant)) return;
    this.#work = this.#work
      .then(() => this.#processChanges(roomId, changes))
      .catch((error: unknown) =>
        log.error(
          { err: error, roomId },
          'Failed to update device lists of remote users after membership changes',
        ),
      );
  }

  async #processChanges(roomId: string, changes: readonly MembershipChange[]): Promise<void> {
    const { engine, sharedRooms, serverName, fetchMissing } = this.#deps;
    const head = await engine.heads.get(roomId);
    if (!head) return;
    const isLocal = ({ userId }: MembershipChange) => serverOfUser(userId) === serverName;
    const leftUsers = changes
      .filter((change) => !isLocal(change) && change.to !== 'join')
      .map(({ userId }) => userId);
    const joinedUsers = changes
      .filter((change) => !isLocal(change) && change.to === 'join')
      .map(({ userId }) => userId);
    const hasLastLocalUserLeft =
      changes.some((change) => isLocal(change) && change.to !== 'join') && !sharedRooms.hasLocalUser(head);
    if (hasLastLocalUserLeft)
      await this.#dropUnshared([...(await this.#usersWithList([...head.members.keys()]))]);
    await this.#dropUnshared(leftUsers);
    const isEncrypted = head.entry('m.room.encryption', '') !== undefined;
    if (isEncrypted && joinedUsers.length > 0 && joinedUsers.length <= maxPrefetched)
      await fetchMissing(joinedUsers);
  }

  #usersWithList(userIds: readonly string[]): Promise<Set<string>> {
    return usersWithList(this.#deps.database.reader<E2eeTables>(), userIds);
  }

  async #dropUnshared(userIds: readonly string[]): Promise<void> {
    for (let start = 0; start < userIds.length; start += pageSize) {
      const page = userIds.slice(start, start + pageSize);
      const shared = await this.#deps.sharedRooms.usersSharing(page);
      await this.#drop(page.filter((userId) => !shared.has(userId)));
    }
  }

  async #drop(userIds: readonly string[]): Promise<void> {
    const { database, devices } = this.#deps;
    if (userIds.length === 0) return;
    await database.transaction<E2eeTables, void>(async (writer) => {
      for (const userId of userIds) {
        await deleteList(writer, userId);
        await devices.deleteListChange(writer, userId);
      }
    });
  }

  /** Checks all remote users with a stored device list or a recorded change of their device list. */
  async #dropAllUnshared(): Promise<void> {
    const { database, devices, serverName, sharedRooms } = this.#deps;
    const usersSharing = await sharedRooms.snapshot();
    const lists = (after: string) => listedUsers(database.reader<E2eeTables>(), after, pageSize);
    const changes = (after: string) => devices.usersWithListChange(after, pageSize);
    for (const read of [lists, changes]) {
      for (let page = await read(''); page.length > 0; page = await read(page.at(-1)!)) {
        const remote = page.filter((userId) => serverOfUser(userId) !== serverName);
        const sharing = await usersSharing(remote);
        // Checks these users again with their current rooms, because the snapshot may be outdated.
        await this.#dropUnshared(remote.filter((userId) => !sharing.has(userId)));
      }
    }
  }
}
