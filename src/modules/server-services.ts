import type { AccountReader, Registration } from '../accounts/index.ts';
import type { OutboundHttp } from '../kernel/outbound/index.ts';
import { invalidParam } from '../protocol/index.ts';
import type { Rooms } from '../rooms/index.ts';
import type { OutboundAccess, RoomAccess, UserAccess } from './api/index.ts';
import { roomStateOf } from './rooms/room-state.ts';

/** The services that modules use through their API. */
export interface ServerServices {
  readonly accounts: AccountReader;
  readonly registration: Pick<Registration, 'create' | 'userIdFor'>;
  readonly rooms: Pick<Rooms, 'engine' | 'sending'>;
}

/** Returns the services. @throws Error before the server has started */
export type Services = () => ServerServices;

/** Returns the accounts as modules use them. */
export const userAccess = (services: Services): UserAccess => ({
  async get(userId) {
    const user = await services().accounts.getUser(userId);
    if (user === undefined) return undefined;
    const { isAdmin, isDeactivated, isGuest, isLocked, isSuspended } = user;
    return { userId: user.userId, isAdmin, isDeactivated, isGuest, isLocked, isSuspended };
  },
  async register(localpart, { displayName } = {}) {
    const { registration } = services();
    const userId = registration.userIdFor(localpart);
    await registration.create({ userId, displayName });
    return userId;
  },
});

/** Returns the rooms as modules use them. */
export const roomAccess = (services: Services): RoomAccess => ({
  state: (roomId) => roomStateOf(services().rooms.engine, roomId),
  async send({ roomId, sender: userId, type, stateKey, content, redacts }) {
    const { sending } = services().rooms;
    const sender = { userId, deviceId: undefined, isUnlimited: true };
    if (stateKey !== undefined) return sending.state(sender, roomId, { type, stateKey }, content);
    if (type === 'm.room.member') throw invalidParam('m.room.member needs a stateKey');
    return sending.message(sender, roomId, {
      type,
      content: redacts === undefined ? content : { ...content, redacts },
    });
  },
});

/** Milliseconds. */
const [usualTimeout, maxTimeout] = [10_000, 60_000];

/** Bytes. */
const [usualBody, maxBody] = [1024 * 1024, 50 * 1024 * 1024];

/** Returns requests to other hosts as modules send them. */
export const outboundAccess = (http: Pick<OutboundHttp, 'fetch'>): OutboundAccess => ({
  async fetch(
    url,
    { method = 'GET', headers = {}, body: sent, timeout = usualTimeout, maxBody: limit = usualBody } = {},
  ) {
    const answer = await http.fetch(new URL(url), {
      method,
      headers,
      ...(sent !== undefined && { body: sent }),
      timeout: Math.min(timeout, maxTimeout),
      maxBody: Math.min(limit, maxBody),
    });
    return { status: answer.status, headers: answer.headers, body: answer.body };
  },
});
