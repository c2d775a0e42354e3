import { Type } from 'typebox';
import { type Requester, type Route, route } from '../../kernel/http/index.ts';
import type { Accounts } from '../accounts.ts';
import type { Reauthenticator } from '../interactive-auth/reauthenticator.ts';
import type { PasswordChange } from '../passwords/password-change.ts';

const paths = {
  whoami: ['/_proto/client/v3/account/whoami', '/_proto/client/r0/account/whoami'],
  password: ['/_proto/client/v3/account/password', '/_proto/client/r0/account/password'],
  deactivate: ['/_proto/client/v3/account/deactivate', '/_proto/client/r0/account/deactivate'],
  threepids: ['/_proto/client/v3/account/3pid', '/_proto/client/r0/account/3pid'],
} as const;

export interface AccountRoutesDeps {
  readonly accounts: Accounts;
  readonly passwordChange: PasswordChange;
  readonly reauthenticator: Reauthenticator;
}

export function accountManagementRoutes(deps: AccountRoutesDeps): Route[] {
  return [...readRoutes(), ...changeRoutes(deps)];
}

function readRoutes(): Route[] {
  return [
    route(
      {
        operationId: 'getTokenOwner',
        method: 'GET',
        path: paths.whoami,
        auth: 'guest',
        response: Type.Object({
          user_id: Type.String(),
          device_id: Type.Optional(Type.String()),
          is_guest: Type.Boolean(),
        }),
      },
      ({ requester }) => whoami(requester),
    ),
    route(
      {
        operationId: 'getAccount3PIDs',
        method: 'GET',
        path: paths.threepids,
        auth: 'user',
        response: Type.Object({ threepids: Type.Array(Type.Object({})) }),
      },
      () => ({ threepids: [] }),
    ),
  ];
}

function changeRoutes({ accounts, passwordChange, reauthenticator }: AccountRoutesDeps): Route[] {
  const auth = Type.Optional(Type.Unknown());
  return [
    route(
      {
        operationId: 'changePassword',
        method: 'POST',
        path: paths.password,
        auth: 'user',
        body: Type.Object({
          new_password: Type.String(),
          logout_devices: Type.Optional(Type.Boolean()),
          auth,
        }),
      },
      async ({ requester, body, ip }) => {
        passwordChange.check(body.new_password);
        const operation = 'POST /account/password';
        return reauthenticator.confirm({ requester, operation, body, ip, always: true }, async () => {
          await passwordChange.change(requester, body.new_password, body.logout_devices ?? true);
          return {};
        });
      },
    ),
    route(
      {
        operationId: 'deactivateAccount',
        method: 'POST',
        path: paths.deactivate,
        auth: 'user',
        body: Type.Object({ erase: Type.Optional(Type.Boolean()), auth }),
        response: Type.Object({ id_server_unbind_result: Type.String() }),
      },
      async ({ requester, body, ip }) => {
        const operation = 'POST /account/deactivate';
        return reauthenticator.confirm({ requester, operation, body, ip, always: true }, async () => {
          await accounts.deactivate(requester.userId, body.erase ?? false);
          return { id_server_unbind_result: 'success' };
        });
      },
    ),
  ];
}

const whoami = (requester: Requester) => ({
  user_id: requester.userId,
  device_id: requester.deviceId,
  is_guest: requester.isGuest,
});
