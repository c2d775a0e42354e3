import { Notifications, type NotificationsDeps } from './notifications/notifications.ts';
import { notificationRoutes } from './notifications/routes.ts';
import { PushRules, type PushRulesDeps } from './rules/push-rules.ts';
import { pushRuleRoutes } from './rules/routes.ts';
import { pushRulesSyncSource } from './rules/sync-source.ts';
import { unreadSyncSource } from './unread/sync-source.ts';
import { Unread, type UnreadDeps } from './unread/unread.ts';

/** Opens push rules; they belong to accounts, and are opened with them, before the rooms. */
export function openPushRules(deps: PushRulesDeps) {
  const pushRules = new PushRules(deps);
  return {
    pushRules,
    routes: pushRuleRoutes(pushRules),
    syncSources: [pushRulesSyncSource(pushRules)],
    streams: [pushRules.pushRulesStream],
  };
}

/** Opens unread counts. */
export function openUnread(deps: UnreadDeps) {
  const unread = new Unread(deps);
  return { syncSources: [unreadSyncSource(unread)], stop: () => unread.stop() };
}

/** Opens the list of notifications. */
export const openNotifications = (deps: NotificationsDeps) => ({
  routes: notificationRoutes(new Notifications(deps)),
});
