import { Type } from 'typebox';
import { Reply, type Route, route } from '../../kernel/http/index.ts';
import type { Pages } from '../../kernel/pages/index.ts';
import type { BrowserLogins } from '../browser-logins/browser-logins.ts';
import type { BrowserRequest } from '../browser-logins/continuation.ts';
import { LoginFailure } from '../browser-logins/login-failure.ts';
import { clientLogin } from '../client-logins/client-continuation.ts';
import { readRedirectUrl } from '../client-logins/redirect-url.ts';
import { SamlProvider } from './saml-provider.ts';

/** Maximum bytes of the form with a response. Responses are long for users in many groups. */
const maxResponse = 512 * 1024;

/** Routes of logins with SAML: metadata, the location that receives responses, and the choice of a provider. */
export function samlRoutes(saml: SamlProvider, logins: BrowserLogins, pages: Pages): Route[] {
  const page = { auth: 'none', errors: 'page' } as const;
  return [
    route(
      { ...page, method: 'GET', path: '/_server/client/saml2/metadata.xml' },
      async () => new Reply(200, await saml.metadata(), { 'Content-Type': 'application/samlmetadata+xml' }),
    ),
    route(
      {
        ...page,
        method: 'POST',
        path: '/_server/client/saml2/authn_response',
        bodyMode: 'form',
        bodyLimit: maxResponse,
        body: Type.Object({
          SAMLResponse: Type.String({ maxLength: maxResponse }),
          RelayState: Type.String({ default: '', maxLength: 2000 }),
        }),
      },
      (request) => {
        const { SAMLResponse: response, RelayState: relayState } = request.body;
        return saml.allowsUnsolicited && !logins.hasBegun(request, relayState)
          ? completeUnsolicited(saml, logins, request, response, relayState)
          : complete(logins, request, response, relayState);
      },
    ),
    route(
      {
        ...page,
        method: 'GET',
        path: '/_server/client/saml2/pick_idp',
        query: Type.Object({ session: Type.String({ maxLength: 255 }), idp: Type.Optional(Type.String()) }),
      },
      async (request) => {
        const { session, idp } = request.query;
        try {
          if (idp !== undefined) {
            return await logins.restart(request, session, new URLSearchParams({ saml_idp: idp }));
          }
          const providers = await saml.choices();
          return await pages.page('saml_idp_picker.html', { session, providers });
        } catch (error) {
          return logins.failed(error);
        }
      },
    ),
  ];
}

/** Completes a login that a browser has begun on this server. @param relayState the id of the login */
function complete(
  logins: BrowserLogins,
  request: BrowserRequest,
  response: string,
  relayState: string,
): Promise<Reply> {
  return logins.respond(request, relayState, async (provider, secrets) => {
    if (!(provider instanceof SamlProvider)) {
      throw new LoginFailure('invalid_response', 'This login was started with another provider');
    }
    return provider.authenticate(response, secrets);
  });
}

/** Completes a login that has begun at the identity provider. @param redirectUrl the URL of the client */
async function completeUnsolicited(
  saml: SamlProvider,
  logins: BrowserLogins,
  request: BrowserRequest,
  response: string,
  redirectUrl: string,
): Promise<Reply> {
  try {
    readRedirectUrl(redirectUrl);
    const login = { provider: saml.id, kind: clientLogin, data: { redirectUrl } };
    return await logins.respondUnsolicited(request, login, () => saml.authenticateUnsolicited(response));
  } catch (error) {
    return logins.failed(error);
  }
}
