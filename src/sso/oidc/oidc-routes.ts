import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { BrowserLogins } from '../browser-logins/browser-logins.ts';
import type { BrowserRequest } from '../browser-logins/continuation.ts';
import { LoginFailure } from '../browser-logins/login-failure.ts';
import type { BackchannelLogout } from './backchannel-logout.ts';
import { OidcProvider } from './oidc-provider.ts';

const path = '/_server/client/oidc/callback';
const contract = { path, auth: 'none', errors: 'page' } as const;

/** Routes for the browsers and the logout requests that OpenID Connect providers send. */
export function oidcRoutes(logins: BrowserLogins, logout: BackchannelLogout): Route[] {
  const respond = (request: BrowserRequest, parameters: URLSearchParams) =>
    logins.respond(request, parameters.get('state') ?? '', async (provider, secrets) => {
      if (!(provider instanceof OidcProvider)) {
        throw new LoginFailure('invalid_response', 'This login was started with another provider');
      }
      return provider.authenticate(parameters, secrets);
    });
  return [
    route({ ...contract, method: 'GET' }, (request) =>
      respond(request, new URLSearchParams(request.url.split('?').slice(1).join('?'))),
    ),
    // With response_mode=form_post, the browser sends the response of the provider as a form.
    route(
      {
        ...contract,
        method: 'POST',
        bodyMode: 'form',
        body: Type.Object({
          state: Type.Optional(Type.String()),
          code: Type.Optional(Type.String()),
          iss: Type.Optional(Type.String()),
          error: Type.Optional(Type.String()),
          error_description: Type.Optional(Type.String()),
        }),
      },
      (request) => respond(request, new URLSearchParams(request.body as Record<string, string>)),
    ),
    route(
      {
        method: 'POST',
        path: '/_server/client/oidc/backchannel_logout',
        auth: 'none',
        bodyMode: 'form',
        body: Type.Object({ logout_token: Type.String({ maxLength: 16_384 }) }),
      },
      ({ body }) => logout.run(body.logout_token),
    ),
  ];
}
