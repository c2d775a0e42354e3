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
 * Milliseconds that whoever has changed something waits at most for it to be seen in rooms. Somebody may be in a great
 * many; the rest follows.
 */
const maxWait = 5_000;

/** A room that a user came out of. */
type RoomOfUser = { readonly userId: string; readonly roomId: string };

/**
 * Keeps memberships in step with accounts: a new name or avatar goes into all of a user's rooms, and an account that
 * is closed leaves them. As jobs, so that nothing is forgotten when the server stops in between.
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
   * Registers how the jobs are done; before jobs are started.
   * @param isGuest whether that is a local user without an account of their own
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
   * From now on local users forget the rooms that somebody on another server removes them from; who acts here sees to
   * it themselves. Source: requirement document 2, "forget_rooms_on_leave".
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

  /** Part of the transaction that changes a profile. */
  profileChanged(writer: AnyWriter, userId: string): Promise<void> {
    return this.#schedule(writer, profileJob, userId);
  }

  /** Resolves when the user's rooms show the profile, or when that takes too long. */
  profilePropagated(userId: string): Promise<void> {
    return this.#jobs.attempted(profileJob, userId, maxWait);
  }

  /** Part of the transaction that closes an account. */
  accountDeactivated(writer: AnyWriter, userId: string): Promise<void> {
    return this.#schedule(writer, leaveAllJob, userId);
  }

  /** Resolves when the user of a closed account has left their rooms, or when that takes too long. */
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
    // Nobody will come back to it.
    await memberships.forget(userId, roomId).catch(ignoreMatrixError);
  }
}

async function redactsGuestAccess(engine: RoomReader, eventId: string | undefined): Promise<boolean> {
  const target = eventId === undefined ? undefined : await engine.events.getById(eventId);
  return target?.event.type === 'm.room.guest_access';
}

/** Guests go when a room does not let them in any more. Source: client-server API, "Guest Access". */
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

/** What a room does not allow must not keep the others waiting. */
function ignoreMatrixError(error: unknown): void {
  if (!(error instanceof MatrixError)) throw error;
}
