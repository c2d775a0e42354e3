import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { forbidden, invalidParam, notFound, serverOfUser } from '../../protocol/index.ts';
import type { Accounts } from '../accounts.ts';
import type { User } from '../user-store.ts';

const path = '/_proto/client/v1/admin/lock/:userId';

const lock = Type.Object({ locked: Type.Boolean() });

/** Client-server API, "Account locking". */
export function lockingRoutes(accounts: Accounts, serverName: string): Route[] {
  return [
    route(
      { operationId: 'getAdminLockUser', method: 'GET', path, auth: 'admin', response: lock },
      async ({ params: { userId } }) => {
        const { isLocked } = await target(accounts, userId, serverName);
        return { locked: isLocked };
      },
    ),
    route(
      { operationId: 'setAdminLockUser', method: 'PUT', path, auth: 'admin', body: lock, response: lock },
      async ({ params: { userId }, body: { locked } }) => {
        await target(accounts, userId, serverName);
        await accounts.setLocked(userId, locked);
        return { locked };
      },
    ),
  ];
}

/** @throws MatrixError M_INVALID_PARAM, M_NOT_FOUND, M_FORBIDDEN for administrators, the one who asks included */
async function target(accounts: Accounts, userId: string, serverName: string): Promise<User> {
  if (serverOfUser(userId) !== serverName) throw invalidParam('This is no user of this server');
  const user = userId.includes('\0') ? undefined : await accounts.getUser(userId);
  if (user === undefined || user.isDeactivated) throw notFound('No such user');
  if (user.isAdmin) throw forbidden('Administrators can not be locked');
  return user;
}
