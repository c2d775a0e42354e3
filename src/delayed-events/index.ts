/** Delayed events: scheduled by clients, and sent by the server unless they are cancelled before. */
export { DelayedEvents, maxScheduled } from './delayed-events.ts';
export { delayedEventMigrations } from './migrations.ts';
export { openDelayedEvents } from './open.ts';
