import { Type } from 'typebox';
import { type Reply, type Route, redirect, route } from '../../kernel/http/index.ts';
import type { Pages } from '../../kernel/pages/index.ts';
import type { BrowserLogins } from '../browser-logins/browser-logins.ts';
import type { BrowserRequest } from '../browser-logins/continuation.ts';
import { clientLogin } from './client-continuation.ts';
import { iconUrl } from './icon-url.ts';
import { readRedirectUrl } from './redirect-url.ts';

export interface RedirectRoutesDeps {
  readonly logins: BrowserLogins;
  readonly pages: Pages;
  readonly serverName: string;
  /** The option `public_baseurl`. */
  readonly publicUrl: string | null;
}

const contract = { method: 'GET', auth: 'none', errors: 'page' } as const;
const target = { redirectUrl: Type.String() };

/** Query parameter that marks a request which this server has redirected to its public host. */
const movedParameter = 'hearth_moved';

/**
 * Begins logins of clients. The provider is the only one, the one that the client names, or the one that the user
 * chooses.
 * Source: client-server API, "SSO client login/authentication".
 */
export function redirectRoutes(deps: RedirectRoutesDeps): Route[] {
  const { logins } = deps;
  const begin = async (request: BrowserRequest, provider: string, redirectUrl: string): Promise<Reply> => {
    const parameters = queryOf(request.url);
    const moved = onPublicHost(deps, request, parameters);
    if (moved !== undefined) return moved;
    try {
      readRedirectUrl(redirectUrl);
      const login = { provider, kind: clientLogin, data: { redirectUrl }, parameters };
      return await logins.begin(request, login);
    } catch (error) {
      return logins.failed(error);
    }
  };
  return [
    route(
      {
        ...contract,
        operationId: 'redirectToSSO',
        path: ['/_proto/client/v3/login/sso/redirect', '/_proto/client/r0/login/sso/redirect'],
        query: Type.Object(target),
      },
      (request) => {
        const { providers } = logins;
        if (providers.length === 1) return begin(request, providers[0]!.id, request.query.redirectUrl);
        return redirect(`/_synapse/client/pick_idp?${queryOf(request.url)}`);
      },
    ),
    route(
      {
        ...contract,
        operationId: 'redirectToIdP',
        path: ['/_proto/client/v3/login/sso/redirect/:idpId', '/_proto/client/r0/login/sso/redirect/:idpId'],
        query: Type.Object(target),
      },
      (request) => begin(request, request.params.idpId, request.query.redirectUrl),
    ),
    route(
      {
        ...contract,
        path: '/_server/client/pick_idp',
        query: Type.Object({ ...target, idp: Type.Optional(Type.String()) }),
      },
      ({ url, query }) => pickProvider(deps, url, query),
    ),
  ];
}

/** Returns the page with the list of providers, or a redirect that begins a login at the provider `idp`. */
async function pickProvider(
  { logins, pages, serverName }: RedirectRoutesDeps,
  url: string,
  { redirectUrl, idp }: { readonly redirectUrl: string; readonly idp?: string },
): Promise<Reply> {
  try {
    readRedirectUrl(redirectUrl);
  } catch (error) {
    return logins.failed(error);
  }
  const parameters = queryOf(url);
  parameters.delete('idp');
  if (idp !== undefined) {
    const path = `/_matrix/client/v3/login/sso/redirect/${encodeURIComponent(idp)}`;
    return redirect(`${path}?${parameters}`);
  }
  return pages.page('sso_login_idp_picker.html', {
    server_name: serverName,
    redirect_url: redirectUrl,
    parameters: [...parameters].filter(([name]) => name !== 'redirectUrl'),
    providers: logins.providers.map(({ id, name, icon, brand }) => ({
      idp_id: id,
      idp_name: name,
      idp_icon: icon,
      idp_brand: brand,
      icon_url: icon && iconUrl(icon),
    })),
  });
}

/**
 * Redirects a browser that uses another host name of this server to the public host name. The provider sends the
 * browser back to the public host name, and the browser then sends the cookie of the login only if that host has set
 * it. The query parameter `movedParameter` prevents a loop of redirects behind a proxy that changes the host name.
 */
function onPublicHost(
  { publicUrl }: RedirectRoutesDeps,
  { headers, url }: BrowserRequest,
  parameters: URLSearchParams,
): Reply | undefined {
  if (publicUrl === null || parameters.has(movedParameter)) return undefined;
  const { host } = new URL(publicUrl);
  if (headers['host'] === host) return undefined;
  const moved = new URLSearchParams(parameters);
  moved.set(movedParameter, '1');
  const path = (url.split('?', 1)[0] ?? '').replace(/^\/+/, '');
  return redirect(`${publicUrl.replace(/\/*$/, '/')}${path}?${moved}`);
}

const queryOf = (url: string) => new URLSearchParams(url.split('?').slice(1).join('?'));
