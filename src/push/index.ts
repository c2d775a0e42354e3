/** Push rules, and the unread counts and notifications that follow from them. */

export { pushMigrations } from './migrations.ts';
export { Notifications } from './notifications/notifications.ts';
export { notificationRoutes } from './notifications/routes.ts';
export { PushRules, type PushRulesChange, type PushRulesDeps } from './rules/push-rules.ts';
export { pushRuleRoutes } from './rules/routes.ts';
export { pushRulesSyncSource } from './rules/sync-source.ts';
export { unreadSyncSource } from './unread/sync-source.ts';
export type { UnreadCount, UnreadCounts } from './unread/tally.ts';
export { Unread, type UnreadDeps } from './unread/unread.ts';
