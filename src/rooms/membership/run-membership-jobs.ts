import type { Clock } from '../../kernel/clock.ts';
import type { AnyWriter, Database } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { MatrixError, serverOfUser } from '../../protocol/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import { visibleContent } from '../../room-engine/index.ts';
import { guestsMayJoin } from './joining.ts';
import { leaveAllJob, profileJob } from './membership-jobs.ts';
import type { Memberships } from './memberships.ts';

const removeGuestsJob = 'rooms/guests';
const forgetJob = 'rooms/forgetting';

/** A user and a room that they have left. */
type RoomOfUser = { readonly userId: string; readonly roomId: string };

export interface MembershipJobDeps {
  readonly database: Database;
  readonly jobs: Jobs;
  readonly clock: Clock;
  readonly log: Logger;
  readonly serverName: string;
  readonly engine: RoomReader;
  readonly memberships: Memberships;
  /** Whether a local user is a guest. */
  readonly isGuest: (userId: string) => Promise<boolean>;
  readonly options: { readonly forget_rooms_on_leave: boolean };
}

/**
 * Registers the jobs that apply changes of accounts to memberships. Must be called before jobs are started. A new
 * display name or avatar is sent to all rooms of the user, a deactivated user leaves all rooms, and guests leave rooms
 * that forbid guest access. These changes are jobs, so that a restart does not lose them.
 * Source: client-server API, "Profiles" and `POST /account/deactivate`.
 */
export function runMembershipJobs(deps: MembershipJobDeps): void {
  const { jobs, engine, memberships, options } = deps;
  jobs.register<string>(profileJob, {
    run: ({ payload: userId, signal }) => updateProfile(engine, memberships, userId, signal),
  });
  jobs.register<string>(leaveAllJob, {
    run: ({ payload: userId, signal }) => leaveAll(engine, memberships, userId, signal),
  });
  jobs.register<string>(removeGuestsJob, {
    run: ({ payload: roomId, signal }) => removeGuests(deps, roomId, signal),
  });
  jobs.register<RoomOfUser>(forgetJob, {
    run: ({ payload: { userId, roomId } }) => memberships.forget(userId, roomId).catch(ignoreMatrixError),
  });
  removeGuestsWhenForbidden(deps);
  if (options.forget_rooms_on_leave) forgetOnRemoteRemoval(deps);
}

/** Schedules the removal of guests when the guest access of a room changes, also by a redaction. */
function removeGuestsWhenForbidden({ database, jobs, clock, log, engine }: MembershipJobDeps): void {
  engine.stream.subscribe(({ roomId, stored, stateChanges }) => {
    const isRedaction = stored.event.type === 'm.room.redaction';
    if (!isRedaction && !stateChanges.some(({ type }) => type === 'm.room.guest_access')) return;
    const schedule = async () => {
      if (isRedaction && !(await redactsGuestAccess(engine, stored.event.redacts))) return;
      const request = { kind: removeGuestsJob, key: roomId, payload: roomId, runAt: clock.now() };
      await database.transaction((writer) => jobs.schedule(writer, request));
    };
    void schedule().catch((error: unknown) =>
      log.warn({ err: error, roomId }, 'Failed to schedule the removal of guests from a room'),
    );
  });
}

/**
 * Makes local users forget rooms that a remote user removes them from; removals by local users are handled
 * in `Memberships`. Source: the option `forget_rooms_on_leave`.
 */
function forgetOnRemoteRemoval({ database, jobs, clock, log, engine, serverName }: MembershipJobDeps): void {
  const isLocal = (userId: string) => serverOfUser(userId) === serverName;
  engine.stream.subscribe(({ roomId, stored, membershipChanges }) => {
    if (isLocal(stored.event.sender)) return;
    const removedUsers = membershipChanges.filter(
      ({ userId, to }) => (to === 'leave' || to === 'ban') && isLocal(userId),
    );
    if (removedUsers.length === 0) return;
    const schedule = async (writer: AnyWriter) => {
      for (const { userId } of removedUsers) {
        const payload: RoomOfUser = { userId, roomId };
        await jobs.schedule(writer, {
          kind: forgetJob,
          key: `${userId} ${roomId}`,
          payload,
          runAt: clock.now(),
        });
      }
    };
    void database
      .transaction(schedule)
      .catch((error: unknown) =>
        log.warn({ err: error, roomId }, 'Failed to schedule that removed users forget a room'),
      );
  });
}

/** Sends the profile of a user to all rooms that the user is joined to. */
async function updateProfile(
  engine: RoomReader,
  memberships: Memberships,
  userId: string,
  signal: AbortSignal,
): Promise<void> {
  for (const roomId of await engine.userRooms.withMembership(userId, 'join')) {
    signal.throwIfAborted();
    const head = await engine.heads.get(roomId);
    const entry = head?.entry('m.room.member', userId);
    const stored = entry && (await engine.events.get(entry.nid));
    if (!stored || entry.membership !== 'join') continue;
    const {
      displayname: _name,
      avatar_url: _avatar,
      reason: _reason,
      ...extraContent
    } = visibleContent(stored);
    await memberships.join(userId, roomId, { extraContent }).catch(ignoreMatrixError);
  }
}

/** Makes a user leave all rooms, reject all invites, retract all knocks, and forget all rooms. */
async function leaveAll(
  engine: RoomReader,
  memberships: Memberships,
  userId: string,
  signal: AbortSignal,
): Promise<void> {
  for (const { roomId, membership } of (await engine.userRooms.of(userId)).values()) {
    signal.throwIfAborted();
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
  { engine, memberships, isGuest, serverName }: MembershipJobDeps,
  roomId: string,
  signal: AbortSignal,
): Promise<void> {
  const head = await engine.heads.get(roomId);
  if (!head || (await guestsMayJoin(engine, head))) return;
  for (const [userId, membership] of [...head.members]) {
    signal.throwIfAborted();
    if (membership !== 'join' || serverOfUser(userId) !== serverName || !(await isGuest(userId))) continue;
    await memberships.leave(userId, roomId).catch(ignoreMatrixError);
  }
}

/** Ignores a refusal in a room, which must not stop the job for other rooms. */
function ignoreMatrixError(error: unknown): void {
  if (!(error instanceof MatrixError)) throw error;
}
