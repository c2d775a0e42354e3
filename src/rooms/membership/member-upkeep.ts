import type { Clock } from '../../kernel/clock.ts';
import type { AnyWriter } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import { MatrixError } from '../../protocol/index.ts';
import type { RoomEngine } from '../engine.ts';
import type { Memberships } from './memberships.ts';

const profileJob = 'rooms/profile';
const departureJob = 'rooms/departure';

/**
 * Keeps memberships in step with accounts: a new name or avatar goes into all of a user's rooms, and an account that
 * is closed leaves them. As jobs, so that nothing is forgotten when the server stops in between.
 * Source: client-server API, "Profiles" and `POST /account/deactivate`.
 */
export class MemberUpkeep {
  readonly #jobs: Jobs;
  readonly #clock: Clock;

  constructor(jobs: Jobs, clock: Clock) {
    this.#jobs = jobs;
    this.#clock = clock;
  }

  /** Registers how the jobs are done; before jobs are started. */
  register(engine: RoomEngine, memberships: Memberships): void {
    this.#jobs.register<string>(profileJob, {
      run: ({ payload: userId, signal }) => updateProfile(engine, memberships, userId, signal),
    });
    this.#jobs.register<string>(departureJob, {
      run: ({ payload: userId, signal }) => leaveAll(engine, memberships, userId, signal),
    });
  }

  /** Part of the transaction that changes a profile. */
  profileChanged(writer: AnyWriter, userId: string): Promise<void> {
    return this.#schedule(writer, profileJob, userId);
  }

  /** Part of the transaction that closes an account. */
  accountClosed(writer: AnyWriter, userId: string): Promise<void> {
    return this.#schedule(writer, departureJob, userId);
  }

  #schedule(writer: AnyWriter, kind: string, userId: string): Promise<void> {
    return this.#jobs.schedule(writer, { kind, key: userId, payload: userId, runAt: this.#clock.now() });
  }
}

async function updateProfile(
  engine: RoomEngine,
  memberships: Memberships,
  userId: string,
  signal: AbortSignal,
): Promise<void> {
  const profile = await memberships.profileContent(userId);
  for (const roomId of await engine.userRooms.withMembership(userId, 'join')) {
    if (signal.aborted) return;
    const head = await engine.heads.get(roomId);
    const entry = head?.entry('m.room.member', userId);
    const stored = entry && (await engine.events.get(entry.nid));
    if (stored?.event.content['membership'] !== 'join') continue;
    const { displayname: _name, avatar_url: _avatar, reason: _reason, ...rest } = stored.event.content;
    const draft = {
      type: 'm.room.member',
      stateKey: userId,
      sender: userId,
      content: { ...rest, ...profile },
    };
    await engine.timeline.append(roomId, draft).catch(ignoreRefusal);
  }
}

async function leaveAll(
  engine: RoomEngine,
  memberships: Memberships,
  userId: string,
  signal: AbortSignal,
): Promise<void> {
  for (const { roomId, membership } of (await engine.userRooms.of(userId)).values()) {
    if (signal.aborted) return;
    if (membership === 'leave' || membership === 'ban') continue;
    await memberships.leave(userId, roomId).catch(ignoreRefusal);
  }
}

/** What a room does not allow must not keep the others waiting. */
function ignoreRefusal(error: unknown): void {
  if (!(error instanceof MatrixError)) throw error;
}
