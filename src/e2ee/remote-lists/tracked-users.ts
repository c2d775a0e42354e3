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
  /** Has lists fetched. */
  readonly fetchMissing: (userIds: readonly string[]) => Promise<void>;
}

const kind = 'e2ee/drop-device-lists';

/** Milliseconds between two looks at all lists. */
const day = 86_400_000;

/** How many lists are looked at together. */
const pageSize = 200;

/** Members who come at once, up to which their lists are fetched before anybody asks for them. */
const maxAwaited = 20;

/**
 * Drops the lists of users who share no room with a local user any more, since their servers tell nothing of them from
 * then on, and has those fetched of users who come into an encrypted room. What a crash leaves undone is made up for
 * after the next start, before anybody can have come back.
 */
export class TrackedUsers {
  readonly #deps: TrackedUsersDeps;
  #work: Promise<void> = Promise.resolve();

  constructor(deps: TrackedUsersDeps) {
    this.#deps = deps;
    deps.jobs.register(kind, { run: () => this.#sweep() });
    deps.jobs.every(`${kind}/daily`, day, { run: () => this.#sweep() });
  }

  async start(): Promise<void> {
    const { engine, database, jobs, clock } = this.#deps;
    engine.stream.subscribe((fact) => this.#note(fact));
    const order = { kind, key: 'start', payload: null, runAt: clock.now() };
    await database.transaction((writer) => jobs.schedule(writer, order));
  }

  async settled(): Promise<void> {
    let work: Promise<void>;
    do {
      work = this.#work;
      await work;
    } while (work !== this.#work);
  }

  #note({ roomId, membershipChanges }: RoomFact): void {
    const moves = membershipChanges.filter(({ from, to }) => (from === 'join') !== (to === 'join'));
    const { log, serverName } = this.#deps;
    const matters = ({ userId, to }: MembershipChange) =>
      to !== 'join' || serverOfUser(userId) !== serverName;
    if (!moves.some(matters)) return;
    this.#work = this.#work
      .then(() => this.#settle(roomId, moves))
      .catch((error: unknown) =>
        log.error({ err: error, roomId }, 'could not see to the devices of those who have come or gone'),
      );
  }

  async #settle(roomId: string, moves: readonly MembershipChange[]): Promise<void> {
    const { engine, sharedRooms, serverName, fetchMissing } = this.#deps;
    const head = await engine.heads.get(roomId);
    if (!head) return;
    const isLocal = ({ userId }: MembershipChange) => serverOfUser(userId) === serverName;
    const gone = moves.filter((move) => !isLocal(move) && move.to !== 'join').map(({ userId }) => userId);
    const come = moves.filter((move) => !isLocal(move) && move.to === 'join').map(({ userId }) => userId);
    const isOver =
      moves.some((move) => isLocal(move) && move.to !== 'join') && !sharedRooms.hasLocalUser(head);
    if (isOver) await this.#dropUnshared([...(await this.#listed([...head.members.keys()]))]);
    await this.#dropUnshared(gone);
    const isEncrypted = head.entry('m.room.encryption', '') !== undefined;
    if (isEncrypted && come.length > 0 && come.length <= maxAwaited) await fetchMissing(come);
  }

  #listed(userIds: readonly string[]): Promise<Set<string>> {
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

  /** Looks at everybody of whom something is kept. */
  async #sweep(): Promise<void> {
    const { database, devices, serverName, sharedRooms } = this.#deps;
    const shared = await sharedRooms.snapshot();
    const lists = (after: string) => listedUsers(database.reader<E2eeTables>(), after, pageSize);
    const changes = (after: string) => devices.usersWithListChange(after, pageSize);
    for (const read of [lists, changes]) {
      for (let page = await read(''); page.length > 0; page = await read(page.at(-1)!)) {
        const remote = page.filter((userId) => serverOfUser(userId) !== serverName);
        const kept = await shared(remote);
        // Asked again for those few, as the world has gone on meanwhile.
        await this.#dropUnshared(remote.filter((userId) => !kept.has(userId)));
      }
    }
  }
}
