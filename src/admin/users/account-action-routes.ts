import { Type } from 'typebox';
import { type Accounts, type AccountsSlice, maxPasswordLength } from '../../accounts/index.ts';
import { type Requester, type Route, route } from '../../kernel/http/index.ts';
import { invalidParam } from '../../protocol/index.ts';
import { flag, nothing, text } from '../response-fields.ts';
import type { LocalUsers } from './local-user.ts';

export interface AccountActionDeps {
  readonly accounts: Accounts;
  readonly passwordChange: AccountsSlice['passwordChange'];
  readonly registration: AccountsSlice['registration'];
  readonly sessions: AccountsSlice['sessions'];
  readonly users: LocalUsers;
}

const userPath = '/_server/admin/v1/users/:userId';
const adminFlag = Type.Object({ admin: Type.Boolean() });

/** Changes the state, the rights and the password of an account, logs in as its user, and checks user names. */
export function accountActionRoutes(deps: AccountActionDeps): Route[] {
  return [...restrictionRoutes(deps), ...rightsRoutes(deps), ...accessRoutes(deps)];
}

/** Deactivates, suspends and shadow-bans accounts. */
function restrictionRoutes({ accounts, users }: AccountActionDeps): Route[] {
  return [
    route(
      {
        operationId: 'deactivateUser',
        method: 'POST',
        path: '/_server/admin/v1/deactivate/:userId',
        auth: 'admin',
        body: Type.Object({ erase: Type.Optional(Type.Boolean()) }),
        response: Type.Object({ id_server_unbind_result: Type.String() }),
      },
      async ({ params: { userId }, body }) => {
        await users.get(userId);
        await accounts.deactivate(userId, { erase: body.erase ?? false, byAdmin: true });
        return { id_server_unbind_result: 'success' };
      },
    ),
    route(
      {
        operationId: 'suspendUser',
        method: 'PUT',
        path: '/_server/admin/v1/suspend/:userId',
        auth: 'admin',
        body: Type.Object({ suspend: Type.Boolean() }),
        response: Type.Record(text, flag),
      },
      async ({ params: { userId }, body: { suspend }, requester }) => {
        await users.getActive(userId);
        if (suspend && userId === requester.userId) throw invalidParam('You cannot suspend your own account');
        await accounts.setSuspended(userId, suspend);
        return { [`user_${userId}_suspended`]: suspend };
      },
    ),
    ...(['POST', 'DELETE'] as const).map((method) =>
      route(
        {
          operationId: method === 'POST' ? 'shadowBanUser' : 'endUserShadowBan',
          method,
          path: `${userPath}/shadow_ban`,
          auth: 'admin',
          response: nothing,
        },
        async ({ params: { userId } }) => {
          await users.get(userId);
          await accounts.setShadowBanned(userId, method === 'POST');
          return {};
        },
      ),
    ),
  ];
}

/** Shows and changes whether a user is an administrator. */
function rightsRoutes({ accounts, users }: AccountActionDeps): Route[] {
  const path = `${userPath}/admin`;
  return [
    route(
      { operationId: 'getUserAdmin', method: 'GET', path, auth: 'admin', response: adminFlag },
      async ({ params: { userId } }) => ({
        admin: (await users.get(userId)).isAdmin,
      }),
    ),
    route(
      { operationId: 'setUserAdmin', method: 'PUT', path, auth: 'admin', body: adminFlag, response: nothing },
      async ({ params: { userId }, body: { admin }, requester }) => {
        await users.getActive(userId);
        if (!admin && userId === requester.userId) {
          throw invalidParam('You cannot remove your own administrator rights');
        }
        await accounts.setAdmin(userId, admin);
        return {};
      },
    ),
  ];
}

/** Sets passwords, logs in as users, and checks user names. */
function accessRoutes({ passwordChange, sessions, registration, users }: AccountActionDeps): Route[] {
  return [
    route(
      {
        operationId: 'resetUserPassword',
        method: 'POST',
        path: '/_server/admin/v1/reset_password/:userId',
        auth: 'admin',
        body: Type.Object({
          new_password: Type.String({ minLength: 1, maxLength: maxPasswordLength }),
          logout_devices: Type.Optional(Type.Boolean()),
        }),
        response: nothing,
      },
      async ({ params: { userId }, body }) => {
        await users.getActive(userId);
        await passwordChange.reset(userId, body.new_password, body.logout_devices ?? true);
        return {};
      },
    ),
    route(
      {
        operationId: 'logInAsUser',
        method: 'POST',
        path: `${userPath}/login`,
        auth: 'admin',
        body: Type.Object({
          valid_until_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
        }),
        response: Type.Object({ access_token: Type.String() }),
      },
      async ({ params: { userId }, body, requester }) => {
        await users.getActive(userId);
        refuseOwnAccount(requester, userId);
        return { access_token: await sessions.openAs(userId, requester.userId, body.valid_until_ms) };
      },
    ),
    route(
      {
        operationId: 'checkUsernameAvailable',
        method: 'GET',
        path: '/_server/admin/v1/username_available',
        auth: 'admin',
        query: Type.Object({ username: Type.String() }),
        response: Type.Object({ available: Type.Literal(true) }),
      },
      async ({ query }) => {
        await registration.checkAvailableForAdmin(query.username);
        return { available: true };
      },
    ),
  ];
}

function refuseOwnAccount(requester: Requester, userId: string): void {
  if (userId === requester.userId) throw invalidParam('You cannot log in as yourself');
}
