import { Type } from 'typebox';
import { maxPasswordLength } from '../../accounts/index.ts';
import { Reply, type Route, route } from '../../kernel/http/index.ts';
import { notFound } from '../../protocol/index.ts';
import { maxExternalId } from '../../sso/index.ts';
import { flag, integer, nullableInteger, nullableText, text } from '../response-fields.ts';
import type { LocalUsers } from './local-user.ts';
import { type UserDetailsDeps, userDetails } from './user-details.ts';
import type { UserEditor } from './user-editor.ts';

const path = '/_server/admin/v2/users/:userId';

const response = Type.Object({
  name: text,
  displayname: nullableText,
  avatar_url: nullableText,
  threepids: Type.Array(
    Type.Object({ medium: text, address: text, added_at: integer, validated_at: integer }),
  ),
  external_ids: Type.Array(Type.Object({ auth_provider: text, external_id: text })),
  is_guest: flag,
  admin: flag,
  deactivated: flag,
  erased: flag,
  shadow_banned: flag,
  locked: flag,
  suspended: flag,
  creation_ts: integer,
  last_seen_ts: nullableInteger,
  appservice_id: nullableText,
  user_type: nullableText,
  consent_server_notice_sent: nullableText,
  consent_version: nullableText,
  consent_ts: nullableInteger,
});

/** Maximum number of addresses and of external ids in a request. */
const maxIds = 100;

const body = Type.Object({
  password: Type.Optional(Type.String({ minLength: 1, maxLength: maxPasswordLength })),
  logout_devices: Type.Optional(Type.Boolean()),
  displayname: Type.Optional(Type.String()),
  avatar_url: Type.Optional(Type.String()),
  threepids: Type.Optional(
    Type.Array(Type.Object({ medium: Type.String(), address: Type.String() }), { maxItems: maxIds }),
  ),
  external_ids: Type.Optional(
    Type.Array(
      Type.Object({
        auth_provider: Type.String({ maxLength: 255 }),
        external_id: Type.String({ maxLength: maxExternalId }),
      }),
      {
        maxItems: maxIds,
      },
    ),
  ),
  admin: Type.Optional(Type.Boolean()),
  deactivated: Type.Optional(Type.Boolean()),
  locked: Type.Optional(Type.Boolean()),
  user_type: Type.Optional(Type.Union([Type.String(), Type.Null()])),
});

/** Shows, creates and changes users, and finds users by third-party and external ids. */
export function userRoutes(
  deps: UserDetailsDeps & { readonly users: LocalUsers; readonly editor: UserEditor },
): Route[] {
  const { users, editor } = deps;
  return [
    route(
      {
        operationId: 'findUserByThirdPartyId',
        method: 'GET',
        path: '/_server/admin/v1/threepid/:medium/users/:address',
        auth: 'admin',
        response: Type.Object({ user_id: Type.String() }),
      },
      async ({ params: { medium, address } }) => {
        const userId = await deps.addresses?.findUser(medium, address);
        if (userId === undefined) throw notFound('User not found');
        return { user_id: userId };
      },
    ),
    route(
      {
        operationId: 'findUserByExternalId',
        method: 'GET',
        path: '/_server/admin/v1/auth_providers/:provider/users/:externalId',
        auth: 'admin',
        response: Type.Object({ user_id: Type.String() }),
      },
      async ({ params: { provider, externalId } }) => {
        const userId = await deps.externalIds?.find(provider, externalId);
        if (userId === undefined) throw notFound('User not found');
        return { user_id: userId };
      },
    ),
    route(
      { operationId: 'getUser', method: 'GET', path, auth: 'admin', response },
      async ({ params: { userId } }) => userDetails(await users.get(userId), deps),
    ),
    route(
      { operationId: 'putUser', method: 'PUT', path, auth: 'admin', body, needsBody: true, response },
      async ({ params: { userId }, requester, body: given }) => {
        const isNew = await editor.put(requester, userId, {
          password: given.password,
          logoutDevices: given.logout_devices,
          displayName: given.displayname,
          avatarUrl: given.avatar_url,
          isAdmin: given.admin,
          isDeactivated: given.deactivated,
          isLocked: given.locked,
          addresses: given.threepids,
          externalIds: given.external_ids?.map(({ auth_provider, external_id }) => ({
            provider: auth_provider,
            externalId: external_id,
          })),
          userType: given.user_type,
        });
        return new Reply(isNew ? 201 : 200, await userDetails(await users.get(userId), deps));
      },
    ),
  ];
}
