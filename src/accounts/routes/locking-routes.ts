import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { forbidden, invalidParam, notFound, serverOfUser } from '../../protocol/index.ts';
import type { Accounts } from '../accounts.ts';
import type { User } from '../user-store.ts';

const lockPath = '/_proto/client/v1/admin/lock/:userId';
const suspensionPath = '/_proto/client/v1/admin/suspend/:userId';

const lock = Type.Object({ locked: Type.Boolean() });
const suspension = Type.Object({ suspended: Type.Boolean() });

/**
 * Returns the routes that lock and suspend accounts, for administrators. Source: client-server API, "Server
 * Administration".
 */
export function lockingRoutes(accounts: Accounts, serverName: string): Route[] {
  return [
    ...suspensionRoutes(accounts, serverName),
    route(
      { operationId: 'getAdminLockUser', method: 'GET', path: lockPath, auth: 'admin', response: lock },
      async ({ params: { userId } }) => {
        const { isLocked } = await accountToModerate(accounts, userId, serverName);
        return { locked: isLocked };
      },
    ),
    route(
      {
        operationId: 'setAdminLockUser',
        method: 'PUT',
        path: lockPath,
        auth: 'admin',
        body: lock,
        response: lock,
      },
      async ({ params: { userId }, body: { locked } }) => {
        await accountToModerate(accounts, userId, serverName);
        await accounts.setLocked(userId, locked);
        return { locked };
      },
    ),
  ];
}

function suspensionRoutes(accounts: Accounts, serverName: string): Route[] {
  const contract = { path: suspensionPath, auth: 'admin', response: suspension } as const;
  return [
    route(
      { ...contract, operationId: 'getAdminSuspendUser', method: 'GET' },
      async ({ params: { userId } }) => {
        const { isSuspended } = await accountToModerate(accounts, userId, serverName);
        return { suspended: isSuspended };
      },
    ),
    route(
      { ...contract, operationId: 'setAdminSuspendUser', method: 'PUT', body: suspension },
      async ({ params: { userId }, body: { suspended } }) => {
        await accountToModerate(accounts, userId, serverName);
        await accounts.setSuspended(userId, suspended);
        return { suspended };
      },
    ),
  ];
}

/**
 * Returns an account that administrators may lock or suspend.
 * @throws MatrixError M_INVALID_PARAM for a user of another server, M_NOT_FOUND for an unknown or deactivated user,
 * M_FORBIDDEN for an administrator, also the requester
 */
async function accountToModerate(accounts: Accounts, userId: string, serverName: string): Promise<User> {
  if (serverOfUser(userId) !== serverName) throw invalidParam('The user does not belong to this server');
  const user = userId.includes('\0') ? undefined : await accounts.getUser(userId);
  if (user === undefined || user.isDeactivated) throw notFound('No such user');
  if (user.isAdmin) throw forbidden('Administrators cannot be locked or suspended');
  return user;
}
