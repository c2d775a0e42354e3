import type { LastSeen } from '../../devices/index.ts';
import type { CacheRegistry } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { Rooms } from '../../rooms/index.ts';
import type { NoticeRooms } from '../notice-rooms.ts';
import type { ServerNotices } from '../server-notices.ts';
import { type ConsentNoticeOptions, ConsentNotices, type PolicyConsent } from './consent-notices.ts';
import { OncePerUser } from './once-per-user.ts';
import { type ActiveUserLimit, UsageLimitNotices } from './usage-limit-notices.ts';

/** Tells when the limit of monthly active users is reached; provided by `active-users`. */
interface ReachedLimit {
  onReached(listener: () => void): void;
}

/** The services and options that decide about the notices that the server sends by itself. */
export interface NoticeSources {
  readonly lastSeen: Pick<LastSeen, 'subscribe' | 'recentUsers'>;
  readonly consent: PolicyConsent;
  readonly isGuest: (userId: string) => Promise<boolean>;
  /** Absent: no notices about the policy are sent. */
  readonly consentOptions?: ConsentNoticeOptions | undefined;
  /** Absent where monthly active users are not limited. */
  readonly usageLimit?: (ActiveUserLimit & ReachedLimit) | undefined;
  /** The option `mau_limit_alerting`. */
  readonly areLimitAlertsEnabled: boolean;
}

export interface AutomaticNoticesDeps extends NoticeSources {
  readonly database: Database;
  readonly caches: CacheRegistry;
  readonly clock: Clock;
  readonly log: Logger;
  readonly rooms: Pick<Rooms, 'engine'>;
  readonly notices: ServerNotices;
  readonly noticeRooms: NoticeRooms;
}

/**
 * Starts sending notices to active users: about the policy of the server, and about the limit of monthly active users.
 * @returns a function that resolves when no notice is being sent
 */
export function sendAutomaticNotices(deps: AutomaticNoticesDeps): () => Promise<void> {
  const { lastSeen, consentOptions, usageLimit, areLimitAlertsEnabled: alerts } = deps;
  const opened: OncePerUser[] = [];
  const newOncePerUser = (cacheName: string) => {
    const oncePerUser = new OncePerUser(cacheName, deps);
    opened.push(oncePerUser);
    return oncePerUser;
  };
  if (consentOptions) {
    const oncePerUser = newOncePerUser('users_asked_for_consent');
    const notices = new ConsentNotices({ ...deps, oncePerUser }, consentOptions);
    lastSeen.subscribe(({ userId }) => notices.onActivity(userId));
  }
  if (usageLimit) {
    const oncePerUser = newOncePerUser('users_notified_of_limit');
    const notices = new UsageLimitNotices({ ...deps, oncePerUser, limit: usageLimit, alerts });
    lastSeen.subscribe(({ userId }) => notices.onActivity(userId));
    // `lastSeen` may not report these users again within the minute.
    usageLimit.onReached(() => {
      for (const userId of lastSeen.recentUsers()) notices.onActivity(userId);
    });
  }
  return async () => {
    await Promise.all(opened.map((oncePerUser) => oncePerUser.settled()));
  };
}
