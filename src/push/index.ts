/**
 * Push rules, and the unread counts and notifications that follow from them.
 *
 * For slices that notify users of new events (`openUnread` returns both):
 * - `EventNotifications.of(stored, userIds)`: which of some local users an event notifies, and how, by the same decision
 *   as the unread counts. `stored` is `RoomFact.stored`, of a fact on the timeline or of an out-of-band invite.
 * - `BadgeCounts.of(userId)`: the number for app icons, over all rooms, invites included.
 */

export type { BadgeCounts } from './badges/badge-counts.ts';
export type { PushOptions } from './config.ts';
export type { EventNotification, EventNotifications } from './evaluation/event-notifications.ts';
export { pushMigrations } from './migrations.ts';
export { openNotifications, openPushRules, openUnread, type UnreadSliceDeps } from './open.ts';
export { PushRules, type PushRulesChange, type PushRulesDeps } from './rules/push-rules.ts';
export type { UnreadCount, UnreadCounts } from './unread/tally.ts';
export type { Unread } from './unread/unread.ts';
