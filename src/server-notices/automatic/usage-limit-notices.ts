import type { Clock } from '../../kernel/clock.ts';
import type { JsonObject, MatrixError } from '../../protocol/index.ts';
import type { Rooms } from '../../rooms/index.ts';
import type { NoticeRooms } from '../notice-rooms.ts';
import type { ServerNotices } from '../server-notices.ts';
import type { OncePerUser } from './once-per-user.ts';

/** The limit of monthly active users; provided by `active-users`. */
export interface ActiveUserLimit {
  /** Whether further users are refused. */
  readonly isReached: boolean;
  /**
   * Returns whether the limit applies to the user. It applies to counted users, except users of application services.
   */
  appliesTo(userId: string): boolean;
  /** Returns the error for users who are refused. */
  error(): MatrixError;
}

export interface UsageLimitNoticesDeps {
  readonly rooms: Pick<Rooms, 'engine'>;
  readonly notices: Pick<ServerNotices, 'send'>;
  readonly noticeRooms: Pick<NoticeRooms, 'of'>;
  readonly limit: ActiveUserLimit;
  readonly oncePerUser: OncePerUser;
  readonly clock: Clock;
  /** The option `mau_limit_alerting`: without it, notices are only removed. */
  readonly alerts: boolean;
}

/** The pinned events of a notice room. */
interface PinnedEvents {
  readonly pinned: readonly string[];
  /** Pinned events that are not notices about the limit; they stay pinned. */
  readonly others: readonly string[];
  /** The nid of the room's `m.room.pinned_events`; absent before the first one. */
  readonly changedBy: number | undefined;
}

/** Names notices about the limit. Source: client-server API, "Server Notices". */
const noticeType = 'm.server_notice.usage_limit_reached';

/**
 * Notices are unpinned when the limit has not been reached for this many milliseconds. Inactive users are removed from
 * the count once an hour, and their places are often taken soon: without a delay, all users would be notified each
 * time.
 */
const unpinDelay = 3_600_000;

/**
 * Notifies active users when the limit of monthly active users is reached, with a notice that is pinned in their notice
 * room, and unpins it when the limit has not been reached for an hour. The pinned events of the room show whether a
 * user was notified, so that a restart repeats no notice. Source: client-server API, "Server Notices".
 */
export class UsageLimitNotices {
  readonly #deps: UsageLimitNoticesDeps;
  /** Whether the limit is reached, or has been reached within the last `unpinDelay`. */
  #isInForce: boolean;
  /** When the limit was first seen not to be reached, by the monotonic clock; absent while the limit is reached. */
  #belowSince: number | undefined;

  constructor(deps: UsageLimitNoticesDeps) {
    this.#deps = deps;
    this.#isInForce = deps.limit.isReached;
  }

  /**
   * Called when a user has sent a request: sends the notice to a counted user when the limit is reached, and unpins the
   * notice when the limit has ended.
   */
  onActivity(userId: string): void {
    const { limit, oncePerUser } = this.#deps;
    const isInForce = limit.isReached || (this.#isInForce && !this.#isOver());
    if (limit.isReached) this.#belowSince = undefined;
    if (isInForce !== this.#isInForce) oncePerUser.runAgain();
    this.#isInForce = isInForce;
    if (limit.appliesTo(userId)) oncePerUser.run(userId, () => this.#notify(userId));
  }

  /** Whether the limit has not been reached for so long that the notices are unpinned. */
  #isOver(): boolean {
    const now = this.#deps.clock.monotonic();
    this.#belowSince ??= now;
    return now - this.#belowSince >= unpinDelay;
  }

  async #notify(userId: string): Promise<void> {
    const { limit, alerts } = this.#deps;
    const pins = await this.#pinnedFor(userId);
    const isNotified = pins.others.length < pins.pinned.length;
    if (isNotified && !(this.#isInForce && alerts)) await this.#pin(userId, pins.others);
    else if (!isNotified && limit.isReached && alerts) await this.#sendPinned(userId, pins);
  }

  /**
   * Sends the notice and pins it. The transaction id names the current `m.room.pinned_events`, so that no second notice
   * is sent when the server stops before it has pinned the first.
   */
  async #sendPinned(userId: string, { others, changedBy }: PinnedEvents): Promise<void> {
    const { notices, limit } = this.#deps;
    const { message, extra } = limit.error();
    const content = {
      msgtype: 'm.server_notice',
      body: message,
      server_notice_type: noticeType,
      ...(extra as JsonObject),
    };
    const once = {
      userId: 'usage limit',
      deviceId: undefined,
      txnId: JSON.stringify([userId, changedBy ?? null]),
    };
    const eventId = await notices.send(userId, content, { once });
    await this.#pin(userId, [...others, eventId]);
  }

  async #pin(userId: string, pinned: readonly string[]): Promise<void> {
    const content = { pinned: [...pinned] };
    await this.#deps.notices.send(userId, content, { type: 'm.room.pinned_events', stateKey: '' });
  }

  /** Returns the pinned events of a user's notice room. */
  async #pinnedFor(userId: string): Promise<PinnedEvents> {
    const { noticeRooms, rooms } = this.#deps;
    const { heads, events } = rooms.engine;
    const roomId = await noticeRooms.of(userId);
    const entry = roomId && (await heads.get(roomId))?.entry('m.room.pinned_events', '');
    const value = entry && (await events.get(entry.nid))?.event.content['pinned'];
    const pinned = Array.isArray(value) ? value.filter((id) => typeof id === 'string') : [];
    const found = await events.getManyById(pinned);
    const isNotice = (id: string) => found.get(id)?.event.content['server_notice_type'] === noticeType;
    return { pinned, others: pinned.filter((id) => !isNotice(id)), changedBy: entry ? entry.nid : undefined };
  }
}
