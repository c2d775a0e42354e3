import type { Route } from '../../kernel/http/index.ts';

/**
 * Routes by which users log in, register and change how they authenticate, and by which administrators do
 * this for users. They are not served beside an authentication service, which does all of this instead.
 */
const localLogins: readonly RegExp[] = [
  /^\/_proto\/client\/\w+\/(login|refresh|logout|register)(\/|$)/,
  /^\/_proto\/client\/\w+\/account\/(password|deactivate)(\/|$)/,
  /^\/_proto\/client\/\w+\/account\/3pid\/(add|delete|email|msisdn)(\/|$)/,
  /^\/_proto\/client\/\w+\/delete_devices$/,
  /^\/_proto\/client\/\w+\/auth\/:stage\//,
  /^\/_proto\/static\/client\/login/,
  /^\/_server\/client\/(register|password_reset|pick_username|new_user_consent|pick_idp|sso_register)(\/|$)/,
  /^\/_server\/admin\/v1\/(register|registration_tokens|reset_password|account_validity)(\/|$)/,
  /^\/_server\/admin\/v1\/users\/:userId\/login$/,
];

/** Returns the routes without those that an authentication service replaces. */
export function withoutLocalLogins(routes: readonly Route[]): Route[] {
  return routes.filter(({ contract: { path } }) => {
    const paths = typeof path === 'string' ? [path] : path;
    return !paths.some((one) => localLogins.some((pattern) => pattern.test(one)));
  });
}
