/** Subscriptions of users to threads: MSC4306 and MSC4308. */

export { threadSubscriptionMigrations } from './migrations.ts';
export { openThreadSubscriptions } from './open.ts';
export { ThreadSubscriptions } from './thread-subscriptions.ts';
