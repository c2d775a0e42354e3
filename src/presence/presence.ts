import type { Clock, Timer } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import type { RateLimiter } from '../kernel/rate-limits/index.ts';
import type { StreamWriter } from '../kernel/streams/index.ts';
import { forbidden } from '../protocol/index.ts';
import type { RoomFact, RoomReader } from '../room-engine/index.ts';
import { Announcements } from './announcements.ts';
import type { PresenceConfig } from './config.ts';
import type { FollowedPresence } from './followed-presence.ts';
import type { PresenceRouting } from './presence-routing.ts';
import {
  mustBeSent,
  offline,
  type PresenceSource,
  type PresenceState,
  type PresenceStatus,
} from './presence-status.ts';
import { PresenceWriter } from './presence-writer.ts';
import { ReportedPresence } from './reported-presence.ts';
import { readNotOffline, readPresence } from './store.ts';
import type { PresenceTables } from './tables.ts';
import { UserActivity } from './user-activity.ts';
import { UsersWithoutSharedRoom } from './users-without-shared-room.ts';

export interface PresenceDeps {
  readonly engine: RoomReader;
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly clock: Clock;
  readonly log: Logger;
  /** `rc_presence.per_user` */
  readonly limiter: Pick<RateLimiter, 'take' | 'tryTake'>;
  /** Sends presence to further users; absent: only users who share a room receive it. */
  readonly routing?: PresenceRouting | undefined;
  /**
   * The presence that the main process announces. Absent in the main process: it alone announces and stores presence.
   */
  readonly followed?: FollowedPresence | undefined;
}

/** The device that reports the presence of its user. */
export interface PresentDevice {
  readonly userId: string;
  readonly deviceId: string | undefined;
  /** Whether rate limits do not apply, as to most application services. */
  readonly isUnlimited?: boolean;
}

/** A user who is not offline, or became offline recently. */
interface PresentUser {
  readonly userId: string;
  source: PresenceSource;
  /** The presence that was announced last. */
  announced: PresenceStatus;
  timer: { readonly due: number; readonly timer: Timer } | undefined;
}

/** A presence that another server reports ends after this many milliseconds, unless the server repeats it. */
const reportLifetime = 30 * 60_000;

const doNothing = () => undefined;

/**
 * The presence of all users, in memory: a sync costs no query and no write, and each user who is not offline
 * has one timer. Source: client-server API, "Presence".
 */
export class Presence {
  readonly announcements: Announcements;
  readonly #deps: PresenceDeps;
  readonly #enabled: PresenceConfig['presence']['enabled'];
  readonly #users = new Map<string, PresentUser>();
  readonly #withoutSharedRoom = new UsersWithoutSharedRoom();
  readonly #writer: PresenceWriter;

  constructor(deps: PresenceDeps, enabled: PresenceConfig['presence']['enabled']) {
    this.#deps = deps;
    this.#enabled = enabled;
    this.announcements = new Announcements(deps);
    this.#writer = new PresenceWriter(deps);
    const { followed } = deps;
    if (followed) this.presenceStream.subscribe((fact) => followed.follow(fact));
    else deps.engine.stream.subscribe((fact) => this.#followRoom(fact));
  }

  /** The stream of the changes of presence that other users are notified of. */
  get presenceStream() {
    return this.announcements.stream;
  }

  /** Whether presence exists: from clients, other servers and modules, or, with `untracked`, from modules only. */
  get isEnabled(): boolean {
    return this.#enabled !== false;
  }

  /** Whether modules route presence, so that local users may see users with whom they share no room. */
  get isRouted(): boolean {
    return this.#deps.routing !== undefined;
  }

  /** Restores the stored presence after a restart; users who do not sync again soon become offline. */
  async start(): Promise<void> {
    if (!this.isEnabled) return;
    const now = this.#deps.clock.now();
    const reader = this.#deps.database.reader<PresenceTables>();
    const stored = await readNotOffline(reader);
    if (this.#deps.followed) {
      this.#deps.followed.restore(stored);
      return;
    }
    for (const [userId, { presence, statusMsg, lastActive }] of stored) {
      const activity = new UserActivity(lastActive);
      activity.statusMsg = statusMsg;
      activity.restore(presence, now);
      const user: PresentUser = { userId, source: activity, announced: activity.at(now), timer: undefined };
      this.#users.set(userId, user);
      this.#arm(user);
    }
  }

  /** Cancels all timers, and stores the presence that is not stored yet. */
  async stop(): Promise<void> {
    for (const { timer } of this.#users.values()) timer?.timer.cancel();
    await this.announcements.close();
    await this.#writer.close();
  }

  /**
   * Begins a sync of a device, with the presence that the device reports. A report over the rate limit is ignored. Does
   * nothing when the presence is `offline`, when `presence.enabled` is not `true`, and in a reader process.
   * @returns a function to call when the sync ends
   */
  beginSync(
    { userId, deviceId = '', isUnlimited = false }: PresentDevice,
    presence: PresenceState,
  ): () => void {
    if (this.#enabled !== true || presence === 'offline' || this.#deps.followed) return doNothing;
    const { clock, limiter } = this.#deps;
    const known = this.#users.get(userId)?.source;
    const before = known instanceof UserActivity ? known.presenceOf(deviceId) : undefined;
    const isLimited = !isUnlimited && before !== presence;
    const mayChange = !isLimited || limiter.tryTake(userId) === 0;
    if (!mayChange && before === undefined) return doNothing;
    const { user, activity } = this.#local(userId);
    if (mayChange && before !== presence) activity.set(deviceId, presence, clock.now());
    const end = activity.beginSync(deviceId, clock.now());
    this.#update(user);
    return () => {
      end(clock.now());
      this.#arm(user);
    };
  }

  /**
   * Sets the presence of a local user; has no effect, and counts towards no rate limit, unless `presence.enabled` is
   * true.
   * @throws MatrixError M_LIMIT_EXCEEDED
   */
  set(
    { userId, deviceId = '', isUnlimited = false }: PresentDevice,
    presence: PresenceState,
    statusMsg: string | undefined,
  ): void {
    if (this.#enabled !== true) return;
    if (!isUnlimited) this.#deps.limiter.take(userId);
    const { user, activity } = this.#local(userId);
    activity.set(deviceId, presence, this.#deps.clock.now());
    activity.statusMsg = statusMsg;
    this.#update(user);
  }

  /** Records an activity of a local user. */
  recordActivity(userId: string): void {
    const user = this.#users.get(userId);
    if (!(user?.source instanceof UserActivity)) return;
    user.source.recordActivity(this.#deps.clock.now());
    this.#update(user);
  }

  /**
   * Sets the presence of a remote user as the user's server reports it.
   * @param sharesRoom whether the user shares a room with a local user; other users are bounded in number, and not stored
   */
  report(userId: string, status: PresenceStatus, sharesRoom = true): void {
    if (this.#enabled !== true) return;
    if (sharesRoom) this.#withoutSharedRoom.delete(userId);
    else if (!this.#users.has(userId) && !this.#withoutSharedRoom.add(userId)) return;
    this.#report(userId, status, this.#deps.clock.now() + reportLifetime);
  }

  /** Sets the presence of a user as a module reports it; it holds until another presence of the user is reported. */
  reportByModule(userId: string, status: PresenceStatus): void {
    if (this.isEnabled) this.#report(userId, status, Number.POSITIVE_INFINITY);
  }

  /** Removes presence and status message of a user whose account is closed. */
  forget(userId: string): void {
    if (this.#deps.followed) {
      this.#deps.followed.forget(userId);
      return;
    }
    if (this.isEnabled) this.#report(userId, offline, Number.POSITIVE_INFINITY);
    this.#writer.put(userId, offline);
  }

  /**
   * Returns the presence of a user, as `viewer` may see it.
   * @throws MatrixError M_FORBIDDEN when the two share no room and no module shows the presence to the viewer
   */
  async get(viewer: string, userId: string): Promise<PresenceStatus> {
    if (!this.isEnabled) return offline;
    if (viewer !== userId && !(await this.#maySee(viewer, userId))) {
      throw forbidden('You do not share a room with this user');
    }
    return this.peek(userId) ?? (await this.lastKnown([userId])).get(userId) ?? offline;
  }

  /** Returns the users who are not offline and whose presence modules show to `viewer`. */
  async routedTo(viewer: string): Promise<Map<string, PresenceStatus>> {
    const interests = await this.#deps.routing?.interestsOf(viewer);
    const statuses = new Map<string, PresenceStatus>();
    for (const userId of interests === 'all' ? this.usersNotOffline.keys() : (interests ?? [])) {
      const status = this.peek(userId);
      if (status && status.presence !== 'offline') statuses.set(userId, status);
    }
    return statuses;
  }

  /**
   * Reads the last known presence of users, from the database where it is not in memory; users who were never
   * present are absent.
   */
  async lastKnown(userIds: readonly string[]): Promise<Map<string, PresenceStatus>> {
    const inMemory = new Map<string, PresenceStatus>();
    for (const userId of userIds) {
      const status = this.#deps.followed?.get(userId) ?? this.#writer.get(userId);
      if (status) inMemory.set(userId, status);
    }
    const others = userIds.filter((userId) => !inMemory.has(userId));
    if (others.length === 0) return inMemory;
    const reader = this.#deps.database.reader<PresenceTables>();
    return new Map([...(await readPresence(reader, others)), ...inMemory]);
  }

  /** Returns the presence of a user from memory; `undefined` for most offline users. */
  peek(userId: string): PresenceStatus | undefined {
    const { followed, clock } = this.#deps;
    return followed ? followed.notOffline.get(userId) : this.#users.get(userId)?.source.at(clock.now());
  }

  /** A map whose keys are all users who are not offline, and some who became offline recently. */
  get usersNotOffline(): ReadonlyMap<string, unknown> {
    return this.#deps.followed?.notOffline ?? this.#users;
  }

  async #maySee(viewer: string, userId: string): Promise<boolean> {
    const { engine, routing } = this.#deps;
    if (await engine.shareRoom(viewer, userId)) return true;
    const interests = await routing?.interestsOf(viewer);
    return interests === 'all' || interests?.has(userId) === true;
  }

  /** Records the activity of the sender, and announces the presence of users who join to the members of the room. */
  #followRoom({ stored, onTimeline, membershipChanges, roomId }: RoomFact): void {
    if (onTimeline) this.recordActivity(stored.event.sender);
    for (const { userId, from, to } of membershipChanges) {
      const user = to === 'join' && from !== 'join' ? this.#users.get(userId) : undefined;
      if (user) this.announcements.add(userId, user.announced, roomId);
    }
  }

  /** Returns a local user with the activity of the devices, which begins empty for a user who was offline. */
  #local(userId: string): { user: PresentUser; activity: UserActivity } {
    const presentUser = this.#users.get(userId);
    if (presentUser?.source instanceof UserActivity)
      return { user: presentUser, activity: presentUser.source };
    const unwritten = this.#writer.get(userId);
    const activity = new UserActivity(unwritten?.lastActive);
    activity.statusMsg = unwritten?.statusMsg;
    const user = presentUser ?? { userId, source: activity, announced: offline, timer: undefined };
    user.source = activity;
    this.#users.set(userId, user);
    if (!unwritten) void this.#restoreStatusMessage(user, activity);
    return { user, activity };
  }

  /** Restores the stored status message of a user who returns. */
  async #restoreStatusMessage(user: PresentUser, activity: UserActivity): Promise<void> {
    const { database, log } = this.#deps;
    try {
      const stored = await readPresence(database.reader<PresenceTables>(), [user.userId]);
      activity.statusMsg ??= stored.get(user.userId)?.statusMsg;
      if (this.#users.get(user.userId)?.source === activity) this.#update(user);
    } catch (error) {
      log.error({ err: error }, 'Failed to read the stored presence of a user who has returned');
    }
  }

  #report(userId: string, status: PresenceStatus, until: number): void {
    const user = this.#users.get(userId) ?? {
      userId,
      source: new ReportedPresence(status, until),
      announced: offline,
      timer: undefined,
    };
    user.source = new ReportedPresence(status, until);
    this.#users.set(userId, user);
    this.#update(user);
  }

  /** Announces and stores the presence of a user if it has changed, and sets the timer of its next change. */
  #update(user: PresentUser): void {
    const status = user.source.at(this.#deps.clock.now());
    if (mustBeSent(user.announced, status)) {
      user.announced = status;
      this.announcements.add(user.userId, status);
      if (!this.#withoutSharedRoom.has(user.userId)) this.#writer.put(user.userId, status);
    }
    if (status.presence === 'offline' && user.source.nextChange(this.#deps.clock.now()) === undefined) {
      user.timer?.timer.cancel();
      if (this.#users.get(user.userId) === user) {
        this.#users.delete(user.userId);
        this.#withoutSharedRoom.delete(user.userId);
      }
    } else this.#arm(user);
  }

  /** Sets the timer of the next change, unless a timer is due earlier, so that most syncs set no timer. */
  #arm(user: PresentUser): void {
    const { clock } = this.#deps;
    const now = clock.now();
    const next = user.source.nextChange(now);
    if (next === undefined || (user.timer && user.timer.due <= next)) return;
    user.timer?.timer.cancel();
    const timer = clock.setTimer(next - now, () => {
      user.timer = undefined;
      this.#update(user);
    });
    user.timer = { due: next, timer };
  }
}
