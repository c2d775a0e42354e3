import { Type } from 'typebox';
import { type Route, route } from '../kernel/http/index.ts';
import { forbidden } from '../protocol/index.ts';
import type { OpenIdTokens } from './openid-tokens.ts';

/** Returns the route where users request tokens. Source: client-server API, "OpenID". */
export function openIdRoutes(tokens: OpenIdTokens, serverName: string): Route[] {
  return [
    route(
      {
        operationId: 'requestOpenIdToken',
        method: 'POST',
        path: [
          '/_proto/client/v3/user/:userId/openid/request_token',
          '/_proto/client/r0/user/:userId/openid/request_token',
          // The SDKs of Element Classic request this path.
          '/_proto/client/unstable/user/:userId/openid/request_token',
        ],
        auth: 'user',
        body: Type.Object({}),
        response: Type.Object({
          access_token: Type.String(),
          token_type: Type.Literal('Bearer'),
          matrix_server_name: Type.String(),
          expires_in: Type.Integer(),
        }),
      },
      async ({ params, requester }) => {
        if (params.userId !== requester.userId) throw forbidden('You can request tokens only for yourself');
        const { token, expiresIn } = await tokens.issue(requester.userId);
        return {
          access_token: token,
          token_type: 'Bearer',
          matrix_server_name: serverName,
          expires_in: expiresIn,
        };
      },
    ),
  ];
}
