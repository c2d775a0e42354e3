/** Which threads users follow: MSC4306 and MSC4308. */
export { threadSubscriptionMigrations } from './migrations.ts';
export { threadSubscriptionRoomRows } from './room-rows.ts';
export { threadSubscriptionRoutes } from './routes.ts';
export { threadSubscriptionSyncSource } from './sync-source.ts';
export { ThreadSubscriptions } from './thread-subscriptions.ts';
