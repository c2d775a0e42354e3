import { Type } from 'typebox';
import { type Requester, type Route, route } from '../../kernel/http/index.ts';
import { type JsonObject, MatrixError } from '../../protocol/index.ts';
import type { PasswordPolicyOptions } from '../account-options.ts';
import type { RegistrationResult } from '../registration/registered-account.ts';
import type { Registration } from '../registration/registration.ts';
import type { SharedSecretRegistration } from '../registration/shared-secret.ts';
import { loginDeviceFields, sessionResponse, toLoginDevice, toSessionResponse } from './session-response.ts';

const answer = ({ userId, session }: RegistrationResult) => toSessionResponse(userId, session);

/** Maximum bytes of a registration request, which needs no authentication. */
const bodyLimit = 65_536;

/** Returns the routes that register users. Source: client-server API, "Account registration and management". */
export function registrationRoutes(registration: Registration): Route[] {
  return [
    route(
      {
        operationId: 'register',
        method: 'POST',
        path: ['/_proto/client/v3/register', '/_proto/client/r0/register'],
        auth: 'on-demand',
        ignoreAssertedUser: true,
        query: Type.Object({
          kind: Type.Union([Type.Literal('user'), Type.Literal('guest')], { default: 'user' }),
        }),
        body: Type.Object({
          initial_device_display_name: Type.Optional(Type.Unknown()),
        }),
        bodyLimit,
        response: sessionResponse,
      },
      async (request) => {
        const { query, body, ip } = request;
        if ((body as JsonObject)['type'] === 'm.login.application_service') {
          return answer(
            await registerForService(registration, body as JsonObject, await request.authenticate()),
          );
        }
        if (query.kind === 'user') return answer(await registration.register(body as JsonObject, request));
        const name = body.initial_device_display_name;
        return answer(await registration.registerGuest(typeof name === 'string' ? name : undefined, ip));
      },
    ),
    route(
      {
        operationId: 'checkUsernameAvailability',
        method: 'GET',
        path: ['/_proto/client/v3/register/available', '/_proto/client/r0/register/available'],
        auth: 'none',
        query: Type.Object({ username: Type.String() }),
        response: Type.Object({ available: Type.Literal(true) }),
      },
      async ({ query, ip }) => {
        await registration.checkAvailable(query.username, ip);
        return { available: true };
      },
    ),
  ];
}

/**
 * Returns the route by which clients read the requirements for new passwords; the response is empty without a policy.
 * Source: MSC2000.
 */
export function passwordPolicyRoute(policy: PasswordPolicyOptions): Route {
  return route(
    {
      operationId: 'getPasswordPolicy',
      method: 'GET',
      path: ['/_proto/client/v3/password_policy', '/_proto/client/r0/password_policy'],
      auth: 'none',
      response: Type.Object({
        'm.minimum_length': Type.Optional(Type.Integer()),
        'm.require_digit': Type.Optional(Type.Boolean()),
        'm.require_symbol': Type.Optional(Type.Boolean()),
        'm.require_lowercase': Type.Optional(Type.Boolean()),
        'm.require_uppercase': Type.Optional(Type.Boolean()),
      }),
    },
    () =>
      policy.enabled
        ? {
            'm.minimum_length': policy.minimum_length,
            'm.require_digit': policy.require_digit,
            'm.require_symbol': policy.require_symbol,
            'm.require_lowercase': policy.require_lowercase,
            'm.require_uppercase': policy.require_uppercase,
          }
        : {},
  );
}

/**
 * Registers a user of the application service `requester`.
 * @throws MatrixError M_MISSING_TOKEN, M_UNKNOWN_TOKEN
 */
function registerForService(registration: Registration, body: JsonObject, requester: Requester | undefined) {
  if (!requester) throw new MatrixError(401, 'M_MISSING_TOKEN', 'Missing access token');
  if (requester.appservice === undefined) {
    throw new MatrixError(
      401,
      'M_UNKNOWN_TOKEN',
      'The access token does not belong to an application service',
    );
  }
  return registration.registerForService(body, requester.appservice);
}

/** Returns the routes of the admin API for registration with the shared secret. */
export function sharedSecretRoutes(registration: SharedSecretRegistration): Route[] {
  const path = '/_server/admin/v1/register';
  return [
    route(
      {
        operationId: 'getRegistrationNonce',
        method: 'GET',
        path,
        auth: 'none',
        response: Type.Object({ nonce: Type.String() }),
      },
      () => ({
        nonce: registration.nonce(),
      }),
    ),
    route(
      {
        operationId: 'registerBySharedSecret',
        method: 'POST',
        path,
        auth: 'none',
        body: Type.Object({
          nonce: Type.String(),
          username: Type.String({ minLength: 1 }),
          password: Type.String({ minLength: 1 }),
          admin: Type.Optional(Type.Boolean()),
          user_type: Type.Optional(Type.Union([Type.String(), Type.Null()])),
          displayname: Type.Optional(Type.String()),
          ...loginDeviceFields,
          inhibit_login: Type.Optional(Type.Boolean()),
          mac: Type.String(),
        }),
        bodyLimit,
        response: sessionResponse,
      },
      async ({ body }) => {
        const login = body.inhibit_login ? undefined : toLoginDevice(body);
        return answer(await registration.register(body, login));
      },
    ),
  ];
}
