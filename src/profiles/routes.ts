import { Type } from 'typebox';
import { type Requester, type Route, route } from '../kernel/http/index.ts';
import {
  forbidden,
  invalidParam,
  isUserId,
  type JsonValue,
  MatrixError,
  missingParam,
} from '../protocol/index.ts';
import type { ProfilesConfig } from './config.ts';
import { maxProfileBytes } from './fields.ts';
import type { Profiles } from './profiles.ts';

/** Whether two users share a room; implemented by the rooms slice. */
export interface RoomSharing {
  shareRoom(userId: string, otherUserId: string): Promise<boolean>;
}

export type ProfileAccessOptions = Pick<
  ProfilesConfig,
  'require_auth_for_profile_requests' | 'limit_profile_requests_to_users_who_share_rooms'
>;

/**
 * Maximum bytes of a request body. Larger than a profile may be, so that a value just above the maximum of a profile is
 * rejected with M_PROFILE_TOO_LARGE.
 */
const maxChangeBytes = 2 * maxProfileBytes;

const paths = {
  all: ['/_proto/client/v3/profile/:userId', '/_proto/client/r0/profile/:userId'],
  field: [
    '/_proto/client/v3/profile/:userId/:keyName',
    '/_proto/client/r0/profile/:userId/:keyName',
    '/_proto/client/unstable/uk.tcpip.msc4133/profile/:userId/:keyName',
  ],
} as const;

export interface ProfileRoutesDeps {
  readonly profiles: Profiles;
  readonly rooms: RoomSharing;
}

/** Returns the routes that read and change profiles. Source: client-server API, "Profiles". */
export function profileRoutes(deps: ProfileRoutesDeps, options: ProfileAccessOptions): Route[] {
  return [...readRoutes(deps, options), ...changeRoutes(deps.profiles)];
}

function readRoutes({ profiles, rooms }: ProfileRoutesDeps, options: ProfileAccessOptions): Route[] {
  const response = Type.Object({}, { additionalProperties: true });
  return [
    route(
      { operationId: 'getUserProfile', method: 'GET', path: paths.all, auth: 'optional', response },
      async ({ params: { userId }, requester }) => {
        await checkMayRead(requester, userId, rooms, options);
        return profiles.get(userId);
      },
    ),
    route(
      { operationId: 'getProfileField', method: 'GET', path: paths.field, auth: 'optional', response },
      async ({ params: { userId, keyName }, requester }) => {
        await checkMayRead(requester, userId, rooms, options);
        return profiles.get(userId, keyName);
      },
    ),
  ];
}

function changeRoutes(profiles: Profiles): Route[] {
  return [
    route(
      {
        operationId: 'setProfileField',
        method: 'PUT',
        path: paths.field,
        auth: 'guest',
        refuseSuspended: true,
        body: Type.Record(Type.String(), Type.Unknown(), { maxProperties: 100 }),
        bodyLimit: maxChangeBytes,
      },
      async ({ params: { userId, keyName }, requester, body }) => {
        const value = Object.hasOwn(body, keyName) ? body[keyName] : undefined;
        if (value === undefined) throw missingParam(`'${keyName}' is missing`);
        await profiles.set(requester, userId, keyName, value as JsonValue);
        return {};
      },
    ),
    route(
      {
        operationId: 'deleteProfileField',
        method: 'DELETE',
        path: paths.field,
        auth: 'guest',
        refuseSuspended: true,
      },
      async ({ params: { userId, keyName }, requester }) => {
        await profiles.delete(requester, userId, keyName);
        return {};
      },
    ),
  ];
}

/** @throws MatrixError M_INVALID_PARAM; M_MISSING_TOKEN, M_FORBIDDEN when the options hide the profile from the requester */
async function checkMayRead(
  requester: Requester | undefined,
  userId: string,
  rooms: RoomSharing,
  options: ProfileAccessOptions,
): Promise<void> {
  if (!isUserId(userId)) throw invalidParam('The user id is not valid');
  const limited = options.limit_profile_requests_to_users_who_share_rooms;
  if (!limited && !options.require_auth_for_profile_requests) return;
  if (requester === undefined) throw new MatrixError(401, 'M_MISSING_TOKEN', 'Missing access token');
  if (!limited || requester.userId === userId) return;
  if (!(await rooms.shareRoom(requester.userId, userId))) throw forbidden('You share no room with this user');
}
