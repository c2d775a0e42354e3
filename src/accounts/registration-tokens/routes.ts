import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { forbidden } from '../../protocol/index.ts';
import type { AccountOptions } from '../account-options.ts';
import type { Limiter } from '../limits.ts';
import type { RegistrationTokens } from './registration-tokens.ts';

export interface TokenValidityDeps {
  readonly registrationTokens: RegistrationTokens;
  /** Checks of tokens, by client address. */
  readonly limiter: Limiter;
}

/**
 * Returns the route that reports whether a registration token is valid.
 * Source: client-server API, "Token-authenticated registration".
 */
export function tokenValidityRoute(
  { registrationTokens, limiter }: TokenValidityDeps,
  options: Pick<AccountOptions, 'enable_registration'>,
): Route {
  return route(
    {
      operationId: 'registrationTokenValidity',
      method: 'GET',
      path: '/_proto/client/v1/register/m.login.registration_token/validity',
      auth: 'none',
      query: Type.Object({ token: Type.String() }),
      response: Type.Object({ valid: Type.Boolean() }),
    },
    async ({ query, ip }) => {
      limiter.take(ip);
      if (!options.enable_registration) throw forbidden('Registration is disabled');
      return { valid: await registrationTokens.isValid(query.token) };
    },
  );
}
