import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Jobs } from '../kernel/jobs/index.ts';
import type { Logger, Metrics } from '../kernel/observability/index.ts';
import type { OutboundHttp } from '../kernel/outbound/index.ts';
import type { Pages } from '../kernel/pages/index.ts';
import type { Randomness } from '../kernel/randomness.ts';
import type { RateLimit, RateLimiter } from '../kernel/rate-limits/index.ts';
import { forgetCursor, type StreamReader } from '../kernel/streams/index.ts';
import type { Mails } from '../mail/index.ts';
import type { Receipts } from '../receipts/index.ts';
import type { RoomReader } from '../room-engine/index.ts';
import { Gateways } from './http/gateway.ts';
import { GatewaySlots } from './http/gateway-slots.ts';
import { HttpPushers } from './http/http-pushers.ts';
import { Notifications } from './http/notification.ts';
import type { PlainHttpCheck } from './http/plain-http.ts';
import { MailPushers } from './mail/mail-pushers.ts';
import { NotificationMails } from './mail/notification-mail.ts';
import type { Avatars } from './mail/pictures.ts';
import { UnsubscribeLinks } from './mail/unsubscribe-links.ts';
import { unsubscribeRoutes } from './mail/unsubscribe-routes.ts';
import { RoomContent } from './names/room-content.ts';
import type { NotifiedUsers, UnreadTotals } from './notified-users.ts';
import { openPushMetrics } from './push-metrics.ts';
import type { AddressOwners, Pushers } from './pushers.ts';
import { readHttpPushersWithPending } from './queue/pending-pushes.ts';
import { PushQueueing, queueName } from './queue/push-queueing.ts';
import { pusherRoutes, setRate } from './routes.ts';
import type { PusherTables } from './tables.ts';

/** The dependencies of notifications by mail. */
export interface NotificationMailing {
  readonly mails: Mails;
  readonly addresses: AddressOwners;
  /** Renders the page that confirms an unsubscription. */
  readonly pages: Pages;
  readonly serverName: string;
  /** URL where clients reach this server, without a slash at its end. */
  readonly baseUrl: string;
  /** The key that signs the links for unsubscribing. */
  readonly key: Uint8Array;
  /** Absent when `enable_media_repo` is off. */
  readonly avatars: Avatars | undefined;
}

/** The connections to push gateways. */
export interface GatewayConnections {
  readonly http: OutboundHttp;
  readonly allowsPlainHttp: PlainHttpCheck;
}

/** Says which users an event notifies, and what the badges of their clients show. */
export interface PushResults {
  readonly notified: NotifiedUsers;
  readonly unread: UnreadTotals;
}

export interface PusherSliceOptions {
  readonly enabled: boolean;
  readonly include_content: boolean;
  /** Maximum random delay of a notification in milliseconds. */
  readonly jitter_delay: number;
}

export interface PusherSliceDeps {
  readonly database: Database;
  readonly streams: StreamReader;
  readonly jobs: Jobs;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly caches: CacheRegistry;
  readonly log: Logger;
  readonly metrics: Metrics | undefined;
  readonly engine: RoomReader;
  readonly receipts: Receipts;
  readonly results: PushResults;
  readonly gateways: GatewayConnections;
  readonly pushers: Pushers;
  /** Makes a limiter of users' actions. */
  readonly userLimiter: (limit: RateLimit) => RateLimiter;
  /** Absent on a server that sends no mail. */
  readonly mailing: NotificationMailing | undefined;
}

/** Opens pushers, and starts to send pending notifications. */
export async function openPushers(deps: PusherSliceDeps, options: PusherSliceOptions) {
  const { database, engine, receipts, pushers, gateways, results } = deps;
  const stopping = new AbortController();
  const rooms = new RoomContent(engine);
  const notifications = new Notifications({
    ...results,
    engine,
    rooms,
    includeContent: options.include_content,
  });
  const httpPushers = new HttpPushers({
    ...deps,
    ...results,
    gateways: new Gateways(gateways.http, new GatewaySlots()),
    notifications,
    metrics: openPushMetrics(deps.metrics),
    stopping: stopping.signal,
  });
  const { mailing } = deps;
  const links = mailing && new UnsubscribeLinks(mailing.baseUrl, mailing.key);
  const mailPushers = options.enabled ? openMailPushers(deps, { rooms, notifications, links }) : undefined;
  const queueing = new PushQueueing({
    ...deps,
    ...results,
    jitter: options.jitter_delay,
    scheduleMails: mailPushers && ((writer, pushes) => mailPushers.scheduleMails(writer, pushes)),
    onPushAdded: ({ id }) => httpPushers.sendPending(id),
  });
  const routes = [
    ...pusherRoutes(pushers, deps.userLimiter(setRate), gateways.allowsPlainHttp),
    ...(mailing && links ? unsubscribeRoutes({ ...mailing, pushers, links }) : []),
  ];
  await pushers.start();
  if (!options.enabled) {
    // Events that arrive while push is off notify no user after it is on again.
    await forgetCursor(database, queueName);
    return { pushers, queueing, routes, stop: async () => undefined };
  }
  const forEachHttpPusher = async (userId: string, work: (id: number) => void) => {
    for (const { id, kind } of await pushers.list(userId)) if (kind === 'http') work(id);
  };
  const logReadFailure = (error: unknown) =>
    deps.log.error({ err: error }, 'The pushers of a user could not be read');
  pushers.onSet(
    (userId) => void forEachHttpPusher(userId, (id) => httpPushers.sendPending(id)).catch(logReadFailure),
  );
  receipts.receiptStream.subscribe(({ userId }) => {
    if (pushers.users.has(userId))
      void forEachHttpPusher(userId, (id) => httpPushers.updateBadge(id)).catch(logReadFailure);
  });
  const idsWithPendingEvents = await readHttpPushersWithPending(database.reader<PusherTables>());
  const restoring = httpPushers.restore(idsWithPendingEvents);
  await queueing.start();
  return {
    pushers,
    queueing,
    routes,
    async stop() {
      await queueing.stop();
      stopping.abort();
      await restoring;
      await httpPushers.stop();
    },
  };
}

/** Opens the pushers that send mails; `undefined` on a server that mails no notifications (`email.enable_notifs`). */
function openMailPushers(
  deps: PusherSliceDeps,
  parts: {
    readonly rooms: RoomContent;
    readonly notifications: Notifications;
    readonly links: UnsubscribeLinks | undefined;
  },
): MailPushers | undefined {
  const { mailing } = deps;
  const { links } = parts;
  if (!mailing || !links || !mailing.mails.options.enable_notifs) return undefined;
  const notificationMails = new NotificationMails({ ...deps, ...mailing, ...parts, links });
  return new MailPushers({ ...deps, ...mailing, ...parts, notificationMails });
}
