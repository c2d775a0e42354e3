/** Pushers: they notify users of events through push gateways and by mail. */
import { fileURLToPath } from 'node:url';

export { plainHttpCheck } from './http/plain-http.ts';
export { subscribeNewUser, subscribingNewUsers } from './mail/new-users.ts';
export type { EventNotification, NotifiedUsers, UnreadTotals } from './notified-users.ts';
export { openPushers, type PusherSliceDeps } from './open.ts';
export { mailAppId, type Pusher, pusherFields } from './pusher.ts';
export { Pushers, type PushersDeps } from './pushers.ts';

/** Folder of the templates for mails about missed events, and for the page that confirms an unsubscription. */
export const pusherTemplates = fileURLToPath(new URL('./templates', import.meta.url));
