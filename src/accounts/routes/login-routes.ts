import { Type } from 'typebox';
import type { Devices } from '../../devices/index.ts';
import { type Requester, type Route, route } from '../../kernel/http/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { Accounts } from '../accounts.ts';
import type { Login } from '../login/login.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { loginDeviceFields, sessionResponse, toLoginDevice, toSessionResponse } from './session-response.ts';

const paths = {
  login: ['/_proto/client/v3/login', '/_proto/client/r0/login'],
  refresh: '/_proto/client/v3/refresh',
  logout: ['/_proto/client/v3/logout', '/_proto/client/r0/logout'],
  logoutAll: ['/_proto/client/v3/logout/all', '/_proto/client/r0/logout/all'],
} as const;

/** Maximum bytes of a login request, which needs no authentication. */
const bodyLimit = 65_536;

/**
 * Returns the routes of `GET /login` and `POST /login`.
 * @param wellKnown the content of `/.well-known/proto/client`, for clients that read it from the login
 * response
 */
export function loginRoutes(login: Login, wellKnown: JsonObject | undefined): Route[] {
  return [
    route(
      {
        operationId: 'getLoginFlows',
        method: 'GET',
        path: paths.login,
        auth: 'none',
        response: Type.Object({ flows: Type.Array(Type.Object({ type: Type.String() })) }),
      },
      () => ({ flows: login.flows() }),
    ),
    route(
      {
        operationId: 'login',
        method: 'POST',
        path: paths.login,
        auth: 'on-demand',
        ignoreAssertedUser: true,
        body: Type.Object({ type: Type.String(), ...loginDeviceFields }),
        bodyLimit,
        response: sessionResponse,
      },
      async (request) => {
        const { body } = request;
        const device = toLoginDevice(body);
        const { userId, session, extraFields } = await login.login(body as JsonObject, device, request);
        return { ...extraFields, ...toSessionResponse(userId, session), well_known: wellKnown };
      },
    ),
  ];
}

export interface SessionRoutesDeps {
  readonly sessions: Sessions;
  readonly accounts: Accounts;
  readonly devices: Devices;
  /** Refuses to refresh sessions that have to be refreshed at another endpoint; absent: there are none. */
  readonly checkRefresh: RefreshCheck | undefined;
}

/**
 * Checks, in the transaction of `POST /refresh`, whether this endpoint may exchange the refresh token.
 * @throws MatrixError
 */
export type RefreshCheck = NonNullable<Parameters<Sessions['refresh']>[2]>;

/** Refreshes and ends sessions. Source: client-server API, "Refreshing access tokens" and "Logout". */
export function sessionRoutes(deps: SessionRoutesDeps): Route[] {
  const { accounts, checkRefresh, devices, sessions } = deps;
  return [
    route(
      {
        operationId: 'refresh',
        method: 'POST',
        path: paths.refresh,
        auth: 'none',
        body: Type.Object({ refresh_token: Type.String() }),
        bodyLimit,
        response: Type.Object({ access_token: Type.String() }),
      },
      async ({ body, ip }) => {
        const tokens = await sessions.refresh(body.refresh_token, ip, checkRefresh);
        return {
          access_token: tokens.accessToken,
          refresh_token: tokens.refreshToken,
          expires_in_ms: tokens.expiresInMs,
        };
      },
    ),
    route(
      {
        operationId: 'logout',
        method: 'POST',
        path: paths.logout,
        auth: 'guest',
        allowLocked: true,
        allowExpired: true,
      },
      async ({ requester }) => {
        await logout(requester, sessions, devices);
        return {};
      },
    ),
    route(
      {
        operationId: 'logout_all',
        method: 'POST',
        path: paths.logoutAll,
        auth: 'guest',
        allowLocked: true,
        allowExpired: true,
      },
      async ({ requester }) => {
        await accounts.logoutAll(requester.userId);
        return {};
      },
    ),
  ];
}

/** Ends the session, and deletes its device if the session has one. */
async function logout(requester: Requester, sessions: Sessions, devices: Devices): Promise<void> {
  const { userId, deviceId, tokenId } = requester;
  if (deviceId !== undefined) await devices.remove(userId, [deviceId]);
  else if (tokenId !== undefined) await sessions.close(userId, tokenId);
}
