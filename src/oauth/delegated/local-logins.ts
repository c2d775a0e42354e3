import { appserviceLoginUnsupported } from '../../accounts/index.ts';
import type { Route } from '../../kernel/http/index.ts';
import { isJsonObject, unrecognized } from '../../protocol/index.ts';

/**
 * Routes with which users log in, register and change how they authenticate, and with which administrators do this for
 * users. They are not served when an authentication service does all of this instead.
 */
const localLogins: readonly RegExp[] = [
  /^\/_proto\/client\/\w+\/(login|refresh|logout)(\/|$)/,
  /^\/_proto\/client\/\w+\/register\//,
  /^\/_proto\/client\/\w+\/account\/(password|deactivate)(\/|$)/,
  /^\/_proto\/client\/\w+\/account\/3pid\/(add|delete|email|msisdn)(\/|$)/,
  /^\/_proto\/client\/\w+\/delete_devices$/,
  /^\/_proto\/client\/\w+\/auth\/:stage\//,
  /^\/_proto\/static\/client\/login/,
  /^\/_server\/client\/(register|password_reset|pick_username|new_user_consent|pick_idp|sso_register|oidc|saml2|sso)(\/|$)/,
  /^\/_server\/admin\/v1\/(register|registration_tokens|reset_password|account_validity)(\/|$)/,
  /^\/_server\/admin\/v1\/users\/:userId\/login$/,
];

/**
 * Returns the routes without those that an authentication service replaces. `POST /register` remains for application
 * services.
 */
export function withoutLocalLogins(routes: readonly Route[]): Route[] {
  return routes
    .filter(({ contract: { path } }) => {
      const paths = typeof path === 'string' ? [path] : path;
      return !paths.some((one) => localLogins.some((pattern) => pattern.test(one)));
    })
    .map((found) => (found.contract.operationId === 'register' ? forServicesOnly(found) : found));
}

/**
 * Returns the route of `POST /register` for application services only: they register their users here as they do on
 * other servers. They receive no access tokens for these users, because only the authentication service issues tokens.
 */
function forServicesOnly({ contract, handler }: Route): Route {
  return {
    contract,
    handler(request) {
      const body: unknown = request.body;
      if (!isJsonObject(body) || body['type'] !== 'm.login.application_service') {
        throw unrecognized('Users register at the authentication service');
      }
      if (body['inhibit_login'] !== true) {
        throw appserviceLoginUnsupported('inhibit_login must be true beside an authentication service');
      }
      return handler(request);
    },
  };
}
