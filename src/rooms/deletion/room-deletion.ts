import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import {
  type Job,
  type JobAttempt,
  type JobProgress,
  type JobStatus,
  type Jobs,
  jobFailure,
  jobStatus,
} from '../../kernel/jobs/index.ts';
import { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import { type Randomness, randomLetters } from '../../kernel/randomness.ts';
import { MatrixError, serverOfUser } from '../../protocol/index.ts';
import { type RoomHead, type StoredEvent, transactionScope } from '../../room-engine/index.ts';
import type { BlockedRooms } from '../blocking/blocked-rooms.ts';
import type { RoomPurge } from '../purge/room-purge.ts';
import { countEvents, hasJoinedUsers } from '../purge/store.ts';
import type { Rooms } from '../rooms.ts';

/** A room to delete, and what happens to its local users. */
export interface RoomDeletionRequest {
  readonly roomId: string;
  /** The local user who creates a new room for the users of the deleted room; null: no new room is created. */
  readonly newRoomUserId: string | null;
  readonly newRoomName: string;
  /** The message that is sent to the new room. */
  readonly message: string;
  /** Whether all rows of the room are deleted; otherwise local users only leave it. */
  readonly purge: boolean;
  /** The administrator who blocks the room together with its deletion; null: the room is not blocked. */
  readonly blockedBy: string | null;
  /** Whether the rows are deleted even if local users could not leave. */
  readonly forcePurge: boolean;
}

/** The result of a deletion for the users of the room. */
export interface RoomShutdown {
  readonly kicked_users: readonly string[];
  readonly failed_to_kick_users: readonly string[];
  readonly local_aliases: readonly string[];
  readonly new_room_id: string | null;
}

export interface RoomDeletionStatus {
  readonly deleteId: string;
  readonly roomId: string;
  readonly status: JobStatus;
  readonly error: string | undefined;
  readonly shutdown: RoomShutdown;
}

export interface RoomDeletionDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly jobs: Jobs;
  readonly randomness: Randomness;
  readonly serverName: string;
  readonly rooms: Rooms;
  readonly purge: RoomPurge;
  readonly blocked: BlockedRooms;
  /** Resolves when all events so far are in the queues of their destination servers. */
  readonly eventsQueued: () => Promise<void>;
}

const job = 'rooms/deletion';

/** The status of a finished deletion can be read for this many milliseconds. */
const statusLifetime = 7 * 24 * 3_600_000;

/** A deletion counts as failed after this number of failed attempts. */
const maxAttempts = 5;

/** Minimum number of users who are removed between two writes of the progress. */
const minUsersPerStep = 50;

/**
 * Minimum number of users who are removed between two writes of the progress, as a share of all removed users. Each
 * write contains the list of removed users, so with steps of a constant size the written bytes would grow with the
 * square of the number of users.
 */
const minAddedShare = 0.1;

/** Minimum number of events that are deleted between two writes of the progress. */
const minEventsPerStep = 2_000;

/**
 * Device id in the transaction scope of the new room and its message; their transaction id is the id of the deletion.
 */
const deletionsDevice = 'rooms/deletion';

/** The payload of the job: the request and its progress. */
type Progress = {
  readonly [Name in keyof Omit<RoomDeletionRequest, 'blockedBy'>]: RoomDeletionRequest[Name];
} & {
  readonly roomNid: number;
  /** Local users to remove; null before they have been listed. */
  readonly users: readonly string[] | null;
  readonly kicked: readonly string[];
  readonly failed: readonly string[];
  /** Local aliases that were moved to the new room, or are about to be. */
  readonly aliases: readonly string[];
  readonly newRoomId: string | null;
  /** Whether the message was sent and the aliases were moved to the new room. */
  readonly isMoved: boolean;
  /**
   * Number of events to delete, and number of deleted events; null before the users have been listed, and without a
   * purge.
   */
  readonly events: { readonly total: number; readonly deleted: number } | null;
};

type Attempt = Pick<JobAttempt<Progress>, 'signal' | 'progress'>;

/**
 * Deletes rooms on behalf of administrators: removes all local users, moves them and the local aliases to a new room if
 * the request requires one, and deletes all rows of the room. A deletion is a job, so that it continues after a
 * restart.
 */
export class RoomDeletion {
  readonly #deps: RoomDeletionDeps;
  /** Handles one request for a room at a time, by room id, so that two requests do not schedule two deletions. */
  readonly #scheduling = new KeyedMutex();
  /** Requests that wait for the first attempt of a deletion, by its id. */
  readonly #waiting = new Map<string, PromiseWithResolvers<RoomShutdown>>();

  /** Registers the job; the constructor must be called before jobs are started. */
  constructor(deps: RoomDeletionDeps) {
    this.#deps = deps;
    deps.jobs.register<Progress>(job, {
      run: ({ payload, key, ...attempt }) => this.#attempt(payload, key ?? '', attempt),
      parallel: 1,
      maxAttempts,
      keep: statusLifetime,
      progressOf,
    });
  }

  /**
   * Schedules a deletion and waits for its first attempt.
   * @throws MatrixError as `schedule`; Error when the attempt has failed: the deletion is tried again
   */
  async perform(head: RoomHead, request: RoomDeletionRequest): Promise<RoomShutdown> {
    const deleteId = this.#newId();
    const waiting = Promise.withResolvers<RoomShutdown>();
    this.#waiting.set(deleteId, waiting);
    try {
      await this.schedule(head, request, deleteId);
      return await waiting.promise;
    } finally {
      this.#waiting.delete(deleteId);
    }
  }

  /**
   * Schedules a deletion.
   * @returns the id of the deletion
   * @throws MatrixError 400 M_UNKNOWN while the room is being deleted
   */
  schedule(head: RoomHead, request: RoomDeletionRequest, deleteId = this.#newId()): Promise<string> {
    return this.#scheduling.run(request.roomId, () => this.#schedule(head, request, deleteId));
  }

  async #schedule(head: RoomHead, request: RoomDeletionRequest, deleteId: string): Promise<string> {
    const { database, jobs, clock, blocked } = this.#deps;
    const { blockedBy, ...options } = request;
    const isRunning = (await this.ofRoom(request.roomId)).some(
      ({ status }) => status === 'scheduled' || status === 'active',
    );
    if (isRunning) throw new MatrixError(400, 'M_UNKNOWN', 'The room is being deleted already');
    const payload: Progress = {
      ...options,
      roomNid: head.roomNid,
      users: null,
      kicked: [],
      failed: [],
      aliases: [],
      newRoomId: null,
      isMoved: false,
      events: null,
    };
    await database.transaction(async (writer) => {
      if (blockedBy !== null) await blocked.blockIn(writer, request.roomId, blockedBy);
      await jobs.schedule(writer, { kind: job, key: deleteId, payload, runAt: clock.now() });
    });
    return deleteId;
  }

  /** Returns the status of a deletion; `undefined` for unknown ids, and from `statusLifetime` after it was finished. */
  async status(deleteId: string): Promise<RoomDeletionStatus | undefined> {
    const [deletionJob] = await this.#deps.jobs.list({ kind: job, key: deleteId, limit: 1 });
    return deletionJob && statusOf(deletionJob);
  }

  /** Returns the deletions of a room, oldest first. */
  async ofRoom(roomId: string): Promise<RoomDeletionStatus[]> {
    const deletions: RoomDeletionStatus[] = [];
    for (let after = 0; ; ) {
      const page = await this.#deps.jobs.list({ kind: job, after, limit: 100 });
      deletions.push(...page.map(statusOf).filter((status) => status.roomId === roomId));
      if (page.length < 100) return deletions;
      after = page.at(-1)?.id ?? after;
    }
  }

  #newId(): string {
    return randomLetters(this.#deps.randomness, 16);
  }

  async #attempt(deletion: Progress, deleteId: string, attempt: Attempt): Promise<Progress> {
    try {
      const finished = await this.#run(deletion, deleteId, attempt);
      this.#waiting.get(deleteId)?.resolve(shutdownOf(finished));
      return finished;
    } catch (error) {
      this.#waiting.get(deleteId)?.reject(error);
      throw error;
    }
  }

  async #run(deletion: Progress, deleteId: string, attempt: Attempt): Promise<Progress> {
    const withUsers = await this.#listUsers(deletion, attempt);
    const withMovedUsers = await this.#removeUsers(
      await this.#createRoom(withUsers, deleteId, attempt),
      attempt,
    );
    const finished = await this.#finishMove(withMovedUsers, deleteId, attempt);
    return deletion.purge ? this.#purge(finished, attempt) : finished;
  }

  async #listUsers(deletion: Progress, { progress }: Attempt): Promise<Progress> {
    if (deletion.users !== null) return deletion;
    const { database, rooms, serverName } = this.#deps;
    const head = await rooms.engine.heads.get(deletion.roomId);
    const users = [...(head?.members ?? [])]
      .filter(([userId]) => serverOfUser(userId) === serverName)
      .filter(([, membership]) => membership !== 'leave' && membership !== 'ban')
      .map(([userId]) => userId);
    const events = deletion.purge ? { total: await countEvents(database, deletion), deleted: 0 } : null;
    const withUsers = { ...deletion, users, events };
    await progress(withUsers);
    return withUsers;
  }

  /** Creates the new room once, also when the process has ended before the progress was stored. */
  async #createRoom(deletion: Progress, deleteId: string, { progress }: Attempt): Promise<Progress> {
    const { newRoomUserId: userId, newRoomName: name } = deletion;
    if (userId === null || deletion.newRoomId !== null) return deletion;
    const { engine, creation } = this.#deps.rooms;
    const scope = transactionScope(userId, deletionsDevice);
    const room = {
      preset: 'public_chat',
      name,
      power_level_content_override: { users_default: -10 },
    } as const;
    const first = await engine.transactions.once(scope, 'createRoom', deleteId, async (transaction) =>
      this.#createEventOf(await creation.create(userId, room, undefined, { transaction })),
    );
    const stored = typeof first === 'number' ? await engine.events.get(first) : first;
    if (!stored) throw new Error('The create event of the new room is missing');
    const created = { ...deletion, newRoomId: stored.event.roomId };
    await progress(created);
    return created;
  }

  async #createEventOf(roomId: string): Promise<StoredEvent> {
    const { engine } = this.#deps.rooms;
    const entry = (await engine.heads.get(roomId))?.entry('m.room.create', '');
    const stored = entry && (await engine.events.get(entry.nid));
    if (!stored) throw new Error('The create event of the new room is missing');
    return stored;
  }

  async #removeUsers(deletion: Progress, { signal, progress }: Attempt): Promise<Progress> {
    const processed = new Set([...deletion.kicked, ...deletion.failed]);
    const kicked = [...deletion.kicked];
    const failed = [...deletion.failed];
    const users = (deletion.users ?? []).filter((userId) => !processed.has(userId));
    let unsaved = 0;
    for (const userId of users) {
      signal.throwIfAborted();
      const isKicked = await this.#removeUser(deletion, userId);
      (isKicked ? kicked : failed).push(userId);
      unsaved++;
      if (unsaved < Math.max(minUsersPerStep, minAddedShare * (kicked.length + failed.length))) continue;
      unsaved = 0;
      await progress({ ...deletion, kicked, failed });
    }
    const finished = { ...deletion, kicked, failed };
    await progress(finished);
    return finished;
  }

  /**
   * Removes a user from the room, and moves the user to the new room. @returns whether the user has left the old room
   */
  async #removeUser({ roomId, newRoomId }: Progress, userId: string): Promise<boolean> {
    const { memberships } = this.#deps.rooms;
    try {
      await memberships.leave(userId, roomId);
      await memberships.forget(userId, roomId);
    } catch (error) {
      if (!(error instanceof MatrixError)) throw error;
      return false;
    }
    if (newRoomId !== null) await memberships.join(userId, newRoomId).catch(ignoreMatrixError);
    return true;
  }

  /** Sends the message to the new room, and points the local aliases to it. */
  async #finishMove(deletion: Progress, deleteId: string, { progress }: Attempt): Promise<Progress> {
    const { newRoomUserId: userId, newRoomId, message, roomId } = deletion;
    if (userId === null || newRoomId === null || deletion.isMoved) return deletion;
    const { sending, aliases } = this.#deps.rooms;
    // Aliases that an interrupted attempt has moved are only in the progress.
    const moved = new Set([...deletion.aliases, ...(await aliases.of(roomId))]);
    const withAliases = { ...deletion, aliases: [...moved] };
    await progress(withAliases);
    const content = { msgtype: 'm.text', body: message };
    const sender = { userId, deviceId: deletionsDevice };
    await sending.message(sender, newRoomId, { type: 'm.room.message', content }, deleteId);
    await aliases.moveAll(roomId, newRoomId);
    const finished = { ...withAliases, isMoved: true };
    await progress(finished);
    return finished;
  }

  async #purge(deletion: Progress, { signal, progress }: Attempt): Promise<Progress> {
    const { roomId, roomNid, forcePurge } = deletion;
    const { purge, rooms, database, serverName, eventsQueued } = this.#deps;
    await rooms.engine.settled();
    await eventsQueued();
    const room = { roomId, roomNid };
    const mayDelete = async () => forcePurge || !(await hasJoinedUsers(database, room, serverName));
    let events = deletion.events ?? { total: 0, deleted: 0 };
    const eventsPerStep = minEventsPerStep + deletion.kicked.length + deletion.failed.length;
    let unsaved = 0;
    const deleted = async (count: number) => {
      events = { ...events, deleted: events.deleted + count };
      unsaved += count;
      if (unsaved < eventsPerStep) return;
      unsaved = 0;
      await progress({ ...deletion, events });
    };
    if (!(await purge.purge(room, mayDelete, signal, deleted)))
      throw new Error('Local users are still in the room');
    // A crash loses the count of the deletions since the last write, so the final count may be too low.
    const finished = { ...deletion, events: { ...events, deleted: Math.max(events.deleted, events.total) } };
    await progress(finished);
    return finished;
  }
}

function statusOf(found: Job): RoomDeletionStatus {
  const deletion = (found.result ?? found.payload) as Progress;
  return {
    deleteId: found.key ?? '',
    roomId: deletion.roomId,
    status: jobStatus(found),
    error: jobFailure(found),
    shutdown: shutdownOf(deletion),
  };
}

/** Counts the local users whose removal has succeeded or failed, and the events that have been deleted. */
function progressOf({ users, kicked, failed, events }: Progress): JobProgress {
  const done = kicked.length + failed.length + (events?.deleted ?? 0);
  return { done, total: users === null ? null : Math.max(done, users.length + (events?.total ?? 0)) };
}

const shutdownOf = (deletion: Progress): RoomShutdown => ({
  kicked_users: deletion.kicked,
  failed_to_kick_users: deletion.failed,
  local_aliases: deletion.aliases,
  new_room_id: deletion.newRoomId,
});

function ignoreMatrixError(error: unknown): void {
  if (!(error instanceof MatrixError)) throw error;
}
