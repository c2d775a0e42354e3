/** Pushers: they notify users of events through push gateways and by mail. */

export type { EventNotification, NotifiedUsers, UnreadTotals } from './notified-users.ts';
export { openPushers, type PusherSliceDeps } from './open.ts';
export { type Pusher, pusherForClient } from './pusher.ts';
export { Pushers, type PushersDeps } from './pushers.ts';
