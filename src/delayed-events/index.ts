/** Delayed events: sent by the server later, unless somebody says otherwise. */
export { DelayedEvents, maxScheduled } from './delayed-events.ts';
export { delayedEventMigrations } from './migrations.ts';
export { delayedEventRoomRows } from './room-rows.ts';
export { delayedEventRoutes } from './routes.ts';
