import { BadgeCounts } from './badges/badge-counts.ts';
import type { PushOptions } from './config.ts';
import { EventNotifications, type EventNotificationsDeps } from './evaluation/event-notifications.ts';
import type { NotifiedMembersDeps } from './evaluation/member.ts';
import { PushEvaluation } from './evaluation/push-evaluation.ts';
import { Notifications, type NotificationsDeps } from './notifications/notifications.ts';
import { notificationRoutes } from './notifications/routes.ts';
import { PushRules, type PushRulesDeps } from './rules/push-rules.ts';
import { pushRuleRoutes } from './rules/routes.ts';
import { pushRulesSyncSource } from './rules/sync-source.ts';
import { unreadSyncSource } from './unread/sync-source.ts';
import { Unread, type UnreadDeps } from './unread/unread.ts';

/** Opens push rules. They belong to accounts, so they are opened with the accounts, before the rooms. */
export function openPushRules(deps: PushRulesDeps) {
  const pushRules = new PushRules(deps);
  return {
    pushRules,
    routes: pushRuleRoutes(pushRules),
    syncSources: [pushRulesSyncSource(pushRules)],
    streams: [pushRules.pushRulesStream],
  };
}

export type UnreadSliceDeps = Omit<UnreadDeps, 'evaluation' | 'enabled'> &
  NotifiedMembersDeps &
  Pick<EventNotificationsDeps, 'invitePolicy'> & {
    readonly options: Pick<PushOptions, 'enabled' | 'group_unread_count_by_room'>;
  };

/** Opens unread counts, badge counts, and the decision which users an event notifies. */
export function openUnread(sliceDeps: UnreadSliceDeps) {
  const { enabled, group_unread_count_by_room: countsRooms } = sliceDeps.options;
  const deps = { ...sliceDeps, enabled, evaluation: new PushEvaluation(sliceDeps) };
  const unread = new Unread(deps);
  return {
    unread,
    evaluation: deps.evaluation,
    eventNotifications: new EventNotifications(deps),
    badgeCounts: new BadgeCounts({ ...deps, unread, countsRooms }),
    syncSources: [unreadSyncSource(unread)],
    stop: () => unread.stop(),
  };
}

/** Opens the list of notifications. */
export const openNotifications = (deps: NotificationsDeps) => ({
  routes: notificationRoutes(new Notifications(deps)),
});
