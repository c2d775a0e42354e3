import { Type } from 'typebox';
import { appserviceLoginUnsupported } from '../../accounts/index.ts';
import type { Route } from '../../kernel/http/index.ts';
import { isJsonObject, type JsonObject, unrecognized } from '../../protocol/index.ts';

/**
 * Routes with which users log in, register and change how they authenticate, and with which administrators do this for
 * users. They are not served when an authentication service does all of this instead.
 */
const localLogins: readonly RegExp[] = [
  /^\/_proto\/client\/\w+\/(login|refresh|logout)(\/|$)/,
  /^\/_proto\/client\/\w+\/register\//,
  /^\/_proto\/client\/\w+\/account\/(password|deactivate)(\/|$)/,
  /^\/_proto\/client\/\w+\/account\/3pid\/(add|delete|email|msisdn)(\/|$)/,
  /^\/_proto\/client\/\w+\/auth\/:stage\//,
  /^\/_proto\/static\/client\/login/,
  /^\/_server\/client\/(register|password_reset|pick_username|new_user_consent|pick_idp|sso_register|oidc|saml2|sso)(\/|$)/,
  /^\/_server\/admin\/v1\/(register|registration_tokens|reset_password|account_validity)(\/|$)/,
  /^\/_server\/admin\/v1\/users\/:userId\/login$/,
];

/** The routes that stay with another handler, by their `operationId`. */
const replacements: ReadonlyMap<string | undefined, (original: Route) => Route> = new Map([
  ['register', registrationForServices],
  ['login', refusedLogin],
  ['getLoginFlows', withoutLoginFlows],
]);

/**
 * Returns the routes without those that an authentication service replaces. `POST /register` remains for application
 * services, and `POST /login` tells them that they receive no sessions.
 */
export function withoutLocalLogins(routes: readonly Route[]): Route[] {
  return routes.flatMap((route) => {
    const { operationId, path } = route.contract;
    const replace = replacements.get(operationId);
    if (replace) return replace(route);
    const paths = typeof path === 'string' ? [path] : path;
    return paths.some((one) => localLogins.some((pattern) => pattern.test(one))) ? [] : route;
  });
}

/**
 * Returns the route of `POST /register` for application services only: they register their users here as they do on
 * other servers. They receive no access tokens for these users, because only the authentication service issues tokens.
 */
function registrationForServices({ contract, handler }: Route): Route {
  return {
    contract,
    handler(request) {
      const body = bodyOfService(request.body);
      if (!body) throw unrecognized('Users register at the authentication service');
      if (body['inhibit_login'] !== true) {
        throw appserviceLoginUnsupported(
          'inhibit_login must be true, because the authentication service issues the tokens',
        );
      }
      return handler(request);
    },
  };
}

/**
 * Returns the route of `POST /login`, which refuses all logins. Source: application service API, "Server admin style
 * permissions".
 */
function refusedLogin({ contract }: Route): Route {
  return {
    contract: { ...contract, body: Type.Object({ type: Type.Optional(Type.String()) }) },
    handler({ body }) {
      throw bodyOfService(body)
        ? appserviceLoginUnsupported(
            'Application services act as users with the query parameter user_id, without a login',
          )
        : atAuthenticationService();
    },
  };
}

/** Returns the route of `GET /login`, which answers 404 M_UNRECOGNIZED. If the route were absent, the answer would be 405. */
function withoutLoginFlows({ contract }: Route): Route {
  return {
    contract,
    handler() {
      throw atAuthenticationService();
    },
  };
}

const atAuthenticationService = () => unrecognized('Users log in at the authentication service');

/** Returns the body of a request of the login type of application services; `undefined` for other bodies. */
const bodyOfService = (body: unknown): JsonObject | undefined =>
  isJsonObject(body) && body['type'] === 'm.login.application_service' ? body : undefined;
