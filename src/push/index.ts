/** Push rules, and the unread counts and notifications that follow from them. */

export { pushMigrations } from './migrations.ts';
export { openNotifications, openPushRules, openUnread } from './open.ts';
export { PushRules, type PushRulesChange, type PushRulesDeps } from './rules/push-rules.ts';
export type { UnreadCount, UnreadCounts } from './unread/tally.ts';
export { Unread, type UnreadDeps } from './unread/unread.ts';
