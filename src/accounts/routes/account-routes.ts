import { Type } from 'typebox';
import { type Requester, type Route, route } from '../../kernel/http/index.ts';
import { forbidden, invalidParam, isServerName, type JsonObject, MatrixError } from '../../protocol/index.ts';
import type { Accounts } from '../accounts.ts';
import type { Reauthenticator } from '../interactive-auth/reauthenticator.ts';
import type { PasswordChange } from '../passwords/password-change.ts';
import type { ThirdPartyIdentifiers } from '../third-party-identifiers.ts';
import type { UsernameReservations } from '../usernames.ts';

const paths = {
  whoami: ['/_proto/client/v3/account/whoami', '/_proto/client/r0/account/whoami'],
  password: ['/_proto/client/v3/account/password', '/_proto/client/r0/account/password'],
  deactivate: ['/_proto/client/v3/account/deactivate', '/_proto/client/r0/account/deactivate'],
} as const;

export interface AccountRoutesDeps {
  readonly accounts: Accounts;
  readonly passwordChange: PasswordChange;
  readonly reauthenticator: Reauthenticator;
  readonly thirdPartyIds: Pick<ThirdPartyIdentifiers, 'unpublishAll'>;
  readonly reservations: Pick<UsernameReservations, 'isSender'>;
}

/** Returns the routes with which users read, change and deactivate their accounts. */
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
  ];
}

const missingToken = () => new MatrixError(401, 'M_MISSING_TOKEN', 'Missing access token');

/**
 * Makes the error for an application service that tries to deactivate its sender. Without the sender, the service could
 * no longer act, and the user id of a deactivated sender cannot be registered again.
 */
const senderRefused = () => forbidden('An application service cannot deactivate its own sender');
const guestRefused = () => new MatrixError(403, 'M_GUEST_ACCESS_FORBIDDEN', 'Guests may not do this');

function changeRoutes({
  accounts,
  passwordChange,
  reauthenticator,
  thirdPartyIds,
  reservations,
}: AccountRoutesDeps): Route[] {
  const auth = Type.Optional(Type.Unknown());
  return [
    route(
      {
        operationId: 'changePassword',
        method: 'POST',
        path: paths.password,
        auth: 'on-demand',
        body: Type.Object({
          new_password: Type.String(),
          logout_devices: Type.Optional(Type.Boolean()),
          auth,
        }),
      },
      async ({ authenticate, body, ip }) => {
        const { new_password: password, logout_devices: logout = true } = body;
        const requester = await authenticate();
        if (requester === undefined && passwordChange.resetFlows().length === 0) throw missingToken();
        if (requester?.isGuest) throw guestRefused();
        passwordChange.check(password);
        if (requester === undefined) {
          await passwordChange.resetByAddress({ body: body as JsonObject, ip });
          return {};
        }
        const operation = 'POST /account/password';
        return reauthenticator.confirm({ requester, operation, body, ip, always: true }, async () => {
          await passwordChange.change(requester, password, logout);
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
        body: Type.Object({
          erase: Type.Optional(Type.Boolean()),
          id_server: Type.Optional(Type.String({ maxLength: 255 })),
          auth,
        }),
        response: Type.Object({ id_server_unbind_result: Type.String() }),
      },
      async ({ requester, body, ip }) => {
        const operation = 'POST /account/deactivate';
        const { id_server: server } = body;
        if (server !== undefined && !isServerName(server))
          throw invalidParam('id_server is not a server name');
        const deactivate = async () => {
          let isForgotten = false;
          await accounts.deactivate(requester.userId, {
            erase: body.erase ?? false,
            byAdmin: false,
            afterCheck: async () => {
              isForgotten = await thirdPartyIds.unpublishAll(requester.userId, server);
            },
          });
          return { id_server_unbind_result: isForgotten ? 'success' : 'no-support' };
        };
        // Users of application services have no password, so they cannot confirm the deactivation.
        if (requester.appservice !== undefined) {
          if (reservations.isSender?.(requester.userId)) throw senderRefused();
          return deactivate();
        }
        return reauthenticator.confirm({ requester, operation, body, ip, always: true }, deactivate);
      },
    ),
  ];
}

const whoami = (requester: Requester) => ({
  user_id: requester.userId,
  device_id: requester.deviceId,
  is_guest: requester.isGuest,
});
