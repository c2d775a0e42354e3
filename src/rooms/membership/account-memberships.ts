import type { Clock } from '../../kernel/clock.ts';
import type { AnyWriter, Database } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import { MatrixError, serverOfUser } from '../../protocol/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import { visibleContent } from '../../room-engine/index.ts';
import { guestsMayJoin } from './joining.ts';
import type { Memberships } from './memberships.ts';

type IsGuest = (userId: string) => Promise<boolean>;

const profileJob = 'rooms/profile';
const leaveAllJob = 'rooms/departure';
const removeGuestsJob = 'rooms/guests';
const forgetJob = 'rooms/forgetting';

/**
 * Maximum wait of a request for its changes to reach the rooms, in milliseconds. A user may be in many rooms;
 * the job continues after the response.
 */
const maxWait = 5_000;

/** A user and a room that they have left. */
type RoomOfUser = { readonly userId: string; readonly roomId: string };

/**
 * Applies changes of accounts to memberships: a new display name or avatar goes into all rooms of the user, a
 * deactivated account leaves them, and guests leave rooms that forbid guest access. Runs as jobs, so that a
 * restart does not lose them.
 * Source: client-server API, "Profiles" and `POST /account/deactivate`.
 */
export class AccountMemberships {
  readonly #jobs: Jobs;
  readonly #clock: Clock;

  constructor(jobs: Jobs, clock: Clock) {
    this.#jobs = jobs;
    this.#clock = clock;
  }

  /**
   * Registers the job handlers. Must be called before jobs are started.
   * @param isGuest whether a local user is a guest
   */
  register(
    engine: RoomReader,
    memberships: Memberships,
    { database, isGuest }: { database: Database; isGuest: IsGuest },
  ): void {
    this.#jobs.register<string>(removeGuestsJob, {
      run: ({ payload: roomId, signal }) => removeGuests(engine, memberships, { roomId, isGuest, signal }),
    });
    engine.stream.subscribe(({ roomId, stored, stateChanges }) => {
      const isRedaction = stored.event.type === 'm.room.redaction';
      if (!isRedaction && !stateChanges.some(({ type }) => type === 'm.room.guest_access')) return;
      const schedule = async () => {
        if (isRedaction && !(await redactsGuestAccess(engine, stored.event.redacts))) return;
        await database.transaction((writer) => this.#schedule(writer, removeGuestsJob, roomId));
      };
      void schedule().catch(() => undefined);
    });
    this.#jobs.register<RoomOfUser>(forgetJob, {
      run: ({ payload: { userId, roomId } }) => memberships.forget(userId, roomId).catch(ignoreMatrixError),
    });
    this.#jobs.register<string>(profileJob, {
      run: ({ payload: userId, signal }) => updateProfile(engine, memberships, userId, signal),
    });
    this.#jobs.register<string>(leaveAllJob, {
      run: ({ payload: userId, signal }) => leaveAll(engine, memberships, userId, signal),
    });
  }

  /**
   * Makes local users forget rooms that a remote user removes them from; removals by local users are handled
   * in `Memberships`. Source: requirement document 2, "forget_rooms_on_leave".
   */
  forgetOnRemoteRemoval(engine: RoomReader, database: Database, serverName: string): void {
    const isLocal = (userId: string) => serverOfUser(userId) === serverName;
    engine.stream.subscribe(({ roomId, stored, membershipChanges }) => {
      if (isLocal(stored.event.sender)) return;
      const allRoomsLeft = membershipChanges.filter(
        ({ userId, to }) => (to === 'leave' || to === 'ban') && isLocal(userId),
      );
      if (allRoomsLeft.length === 0) return;
      const schedule = async (writer: AnyWriter) => {
        for (const { userId } of allRoomsLeft) {
          const payload: RoomOfUser = { userId, roomId };
          const key = `${userId} ${roomId}`;
          await this.#jobs.schedule(writer, { kind: forgetJob, key, payload, runAt: this.#clock.now() });
        }
      };
      void database.transaction(schedule).catch(() => undefined);
    });
  }

  /** Schedules the update of the user's rooms in the transaction that changes the profile. */
  profileChanged(writer: AnyWriter, userId: string): Promise<void> {
    return this.#schedule(writer, profileJob, userId);
  }

  /** Resolves when the user's rooms have the new profile, or after `maxWait`. */
  profilePropagated(userId: string): Promise<void> {
    return this.#jobs.attempted(profileJob, userId, maxWait);
  }

  /** Schedules the leaves in the transaction that deactivates the account. */
  accountDeactivated(writer: AnyWriter, userId: string): Promise<void> {
    return this.#schedule(writer, leaveAllJob, userId);
  }

  /** Resolves when the deactivated user has left all rooms, or after `maxWait`. */
  allRoomsLeft(userId: string): Promise<void> {
    return this.#jobs.attempted(leaveAllJob, userId, maxWait);
  }

  #schedule(writer: AnyWriter, kind: string, id: string): Promise<void> {
    return this.#jobs.schedule(writer, { kind, key: id, payload: id, runAt: this.#clock.now() });
  }
}

async function updateProfile(
  engine: RoomReader,
  memberships: Memberships,
  userId: string,
  signal: AbortSignal,
): Promise<void> {
  for (const roomId of await engine.userRooms.withMembership(userId, 'join')) {
    if (signal.aborted) return;
    const head = await engine.heads.get(roomId);
    const entry = head?.entry('m.room.member', userId);
    const stored = entry && (await engine.events.get(entry.nid));
    if (!stored || entry.membership !== 'join') continue;
    const { displayname: _name, avatar_url: _avatar, reason: _reason, ...given } = visibleContent(stored);
    await memberships.join(userId, roomId, { given }).catch(ignoreMatrixError);
  }
}

async function leaveAll(
  engine: RoomReader,
  memberships: Memberships,
  userId: string,
  signal: AbortSignal,
): Promise<void> {
  for (const { roomId, membership } of (await engine.userRooms.of(userId)).values()) {
    if (signal.aborted) return;
    if (membership !== 'leave' && membership !== 'ban') {
      await memberships.leave(userId, roomId).catch(ignoreMatrixError);
    }
    // A deactivated user cannot rejoin.
    await memberships.forget(userId, roomId).catch(ignoreMatrixError);
  }
}

async function redactsGuestAccess(engine: RoomReader, eventId: string | undefined): Promise<boolean> {
  const target = eventId === undefined ? undefined : await engine.events.getById(eventId);
  return target?.event.type === 'm.room.guest_access';
}

/** Removes guests when a room forbids guest access. Source: client-server API, "Guest Access". */
async function removeGuests(
  engine: RoomReader,
  memberships: Memberships,
  { roomId, isGuest, signal }: { roomId: string; isGuest: IsGuest; signal: AbortSignal },
): Promise<void> {
  const head = await engine.heads.get(roomId);
  if (!head || (await guestsMayJoin(engine, head))) return;
  for (const [userId, membership] of [...head.members]) {
    if (signal.aborted) return;
    if (membership !== 'join' || !(await isGuest(userId))) continue;
    await memberships.leave(userId, roomId).catch(ignoreMatrixError);
  }
}

/** A refusal in one room must not stop the job for the others. */
function ignoreMatrixError(error: unknown): void {
  if (!(error instanceof MatrixError)) throw error;
}
