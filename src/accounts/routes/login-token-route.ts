import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { AccountOptions } from '../account-options.ts';
import type { Reauthenticator } from '../interactive-auth/reauthenticator.ts';
import type { Limiter } from '../limits.ts';
import type { LoginTokens } from '../login/login-tokens.ts';

export interface LoginTokenRouteDeps {
  readonly loginTokens: LoginTokens;
  readonly reauthenticator: Reauthenticator;
  /** Limits how many tokens are issued, by user id. */
  readonly limiter: Limiter;
}

/**
 * Returns the route that issues a login token for another client of the user; no route unless the option allows it.
 * Source: client-server API, "POST /_matrix/client/v1/login/get_token".
 */
export function loginTokenRoutes(
  { loginTokens, reauthenticator, limiter }: LoginTokenRouteDeps,
  { login_via_existing_session: option }: Pick<AccountOptions, 'login_via_existing_session'>,
): Route[] {
  if (!option.enabled) return [];
  return [
    route(
      {
        operationId: 'generateLoginToken',
        method: 'POST',
        path: '/_proto/client/v1/login/get_token',
        auth: 'user',
        body: Type.Object({ auth: Type.Optional(Type.Unknown()) }),
        response: Type.Object({ login_token: Type.String(), expires_in_ms: Type.Integer() }),
      },
      async ({ requester, body, ip }) => {
        const issue = async () => {
          limiter.take(requester.userId);
          const login_token = await loginTokens.issue(requester.userId, option.token_timeout);
          return { login_token, expires_in_ms: option.token_timeout };
        };
        if (!option.require_ui_auth) return issue();
        const operation = 'POST /login/get_token';
        return reauthenticator.confirm({ requester, operation, body, ip, always: true }, issue);
      },
    ),
  ];
}
