import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { OpenIdTokens } from '../../openid/index.ts';
import { MatrixError } from '../../protocol/index.ts';

/**
 * OpenID user info. Requests are unsigned, because they come from services without a signing key. Source:
 * server-server API, "OpenID".
 */
export function userInfoRoute(tokens: OpenIdTokens): Route {
  return route(
    {
      operationId: 'exchangeOpenIdToken',
      method: 'GET',
      path: '/_proto/federation/v1/openid/userinfo',
      auth: 'none',
      query: Type.Object({ access_token: Type.Optional(Type.String()) }),
      response: Type.Object({ sub: Type.String() }),
    },
    async ({ query: { access_token: token } }) => {
      if (token === undefined) throw new MatrixError(401, 'M_MISSING_TOKEN', 'Missing access token');
      const userId = await tokens.userOf(token);
      if (userId === undefined) {
        throw new MatrixError(401, 'M_UNKNOWN_TOKEN', 'Access token unknown or expired');
      }
      return { sub: userId };
    },
  );
}
