import type { AccountData } from '../account-data/index.ts';
import type { AccountReader, Registration } from '../accounts/index.ts';
import type { OutboundHttp } from '../kernel/outbound/index.ts';
import type { Mails } from '../mail/index.ts';
import type { Profiles } from '../profiles/index.ts';
import { invalidParam, notFound } from '../protocol/index.ts';
import type { Rooms } from '../rooms/index.ts';
import type { ObservedServices } from './accounts/account-changes.ts';
import type { NewRoom, OutboundAccess, RoomAccess, UserAccess } from './api/index.ts';
import type { ModuleContext } from './calls/module-context.ts';
import { roomStateOf } from './rooms/room-state.ts';

/** The services that modules use through their API. */
export interface ServerServices extends ObservedServices {
  readonly accounts: AccountReader & ObservedServices['accounts'];
  readonly registration: Pick<Registration, 'create' | 'userIdFor'>;
  readonly rooms: Pick<Rooms, 'engine' | 'sending' | 'creation' | 'memberships' | 'aliases'>;
  readonly profiles: ObservedServices['profiles'] & Pick<Profiles, 'get' | 'setForUser'>;
  readonly accountData: ObservedServices['accountData'] & Pick<AccountData, 'setByClient'>;
  /** Absent where the server sends no mail. */
  readonly mails: Mails | undefined;
}

/** Returns the services. @throws Error before the server has started */
export type Services = () => ServerServices;

/** Returns the access to accounts that modules receive. */
export const userAccess = (services: Services, context: ModuleContext): UserAccess => ({
  get: (userId) =>
    context.leave(async () => {
      const user = await services().accounts.getUser(userId);
      if (user === undefined) return undefined;
      const { isAdmin, isDeactivated, isGuest, isLocked, isSuspended } = user;
      return { userId: user.userId, isAdmin, isDeactivated, isGuest, isLocked, isSuspended };
    }),
  register: (localpart, { displayName } = {}) =>
    context.leave(async () => {
      const { registration } = services();
      const userId = registration.userIdFor(localpart);
      await registration.create({ userId, displayName });
      return userId;
    }),
  profile: (userId) => context.leave(() => services().profiles.get(userId)),
  setProfile: (userId, field, value) =>
    context.leave(async () => {
      await requireAccount(services, userId);
      await services().profiles.setForUser(userId, field, value);
    }),
  accountData: (userId, type, roomId) =>
    context.leave(() => services().accountData.find({ userId, roomId, type })),
  setAccountData: (userId, type, content, roomId) =>
    context.leave(async () => {
      await requireAccount(services, userId);
      await services().accountData.setByClient({ userId, roomId, type }, content);
    }),
});

/** @throws MatrixError M_NOT_FOUND where this server has no such account */
async function requireAccount(services: Services, userId: string): Promise<void> {
  if (!(await services().accounts.getUser(userId))) throw notFound(`${userId} has no account on this server`);
}

/** Returns the access to rooms that modules receive. */
export const roomAccess = (services: Services, context: ModuleContext): RoomAccess => ({
  state: (roomId) => roomStateOf(() => services().rooms.engine, roomId, context),
  send: ({ roomId, sender: userId, type, stateKey, content: given, redacts }) =>
    context.leave(async () => {
      const { sending } = services().rooms;
      // A copy, because the module may change its object before the event is signed and stored.
      const content = structuredClone(given);
      const sender = { userId, deviceId: undefined, isUnlimited: true };
      if (stateKey !== undefined) return sending.state(sender, roomId, { type, stateKey }, content);
      if (type === 'm.room.member') throw invalidParam('m.room.member needs a stateKey');
      return sending.message(sender, roomId, {
        type,
        content: redacts === undefined ? content : { ...content, redacts },
      });
    }),
  create: (creator, room = {}) =>
    context.leave(async () => {
      await requireAccount(services, creator);
      return services().rooms.creation.create(creator, roomRequestOf(room));
    }),
  join: (userId, room, via = []) =>
    context.leave(async () => {
      await requireAccount(services, userId);
      const { aliases, memberships } = services().rooms;
      const { roomId, servers } = room.startsWith('#')
        ? await aliases.locate(room)
        : { roomId: room, servers: [] };
      await memberships.join(userId, roomId, { via: [...via, ...servers] });
      return roomId;
    }),
  resolve: (alias) => context.leave(() => services().rooms.aliases.resolve(alias)),
});

const roomRequestOf = ({
  name,
  topic,
  preset,
  alias,
  isPublished = false,
  invite = [],
  isDirect = false,
  initialState = [],
  version,
}: NewRoom) => ({
  ...(name !== undefined && { name }),
  ...(topic !== undefined && { topic }),
  ...(preset !== undefined && { preset }),
  ...(alias !== undefined && { room_alias_name: alias }),
  ...(version !== undefined && { room_version: version }),
  visibility: isPublished ? ('public' as const) : ('private' as const),
  invite,
  is_direct: isDirect,
  initial_state: initialState.map(({ type, stateKey, content }) => ({ type, state_key: stateKey, content })),
});

/** Timeout of a request when the module sets none, in milliseconds. */
const defaultTimeout = 10_000;

/** Maximum timeout of a request in milliseconds. */
const maxTimeout = 60_000;

/** Maximum bytes of a response when the module sets no maximum. */
const defaultMaxBody = 1024 * 1024;

/** Maximum bytes of a response that a module may set. */
const maxBody = 50 * 1024 * 1024;

/** Returns the access to other hosts that modules receive. */
export const outboundAccess = (
  http: Pick<OutboundHttp, 'fetch'>,
  context: ModuleContext,
): OutboundAccess => ({
  fetch: (
    url,
    {
      method = 'GET',
      headers = {},
      body: sent,
      timeout = defaultTimeout,
      maxBody: limit = defaultMaxBody,
    } = {},
  ) =>
    context.leave(async () => {
      const answer = await http.fetch(new URL(url), {
        method,
        headers,
        ...(sent !== undefined && { body: sent }),
        timeout: Math.min(timeout, maxTimeout),
        maxBody: Math.min(limit, maxBody),
      });
      return { status: answer.status, headers: answer.headers, body: answer.body };
    }),
});
