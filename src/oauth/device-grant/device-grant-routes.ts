import { Type } from 'typebox';
import type { Limiter } from '../../accounts/index.ts';
import { Reply, type Route, route } from '../../kernel/http/index.ts';
import type { Pages } from '../../kernel/pages/index.ts';
import type { BrowserSession, BrowserSessions } from '../browser/browser-sessions.ts';
import { requireFormToken } from '../browser/own-pages.ts';
import { redirectToSignIn } from '../browser/sign-in-routes.ts';
import { type Clients, requireGrantType } from '../clients/clients.ts';
import { clientPaths, type Endpoints, pagePaths } from '../endpoints.ts';
import { deviceCodeGrant } from '../metadata.ts';
import { answerClient, notCached } from '../oauth-error.ts';
import { grantScope } from '../scopes.ts';
import { codeLifetime, type DeviceGrants, pollInterval } from './device-grants.ts';

export interface DeviceGrantDeps {
  readonly clients: Clients;
  readonly grants: DeviceGrants;
  readonly browsers: BrowserSessions;
  readonly pages: Pages;
  readonly endpoints: Endpoints;
  readonly serverName: string;
  /** Limits how often logins begin from one client address. */
  readonly beginLimiter: Limiter;
  /** Limits the codes that a user enters, by user id, so that codes cannot be guessed. */
  readonly codeLimiter: Limiter;
}

const text = Type.String({ default: '', maxLength: 2_000 });

/** The endpoint at which a client without a browser begins a login. Source: RFC 8628, section 3.1. */
export function deviceAuthorizationRoute({
  clients,
  grants,
  endpoints,
  beginLimiter,
}: DeviceGrantDeps): Route {
  return route(
    {
      method: 'POST',
      path: clientPaths.deviceAuthorization,
      auth: 'none',
      bodyMode: 'form',
      body: Type.Object({ client_id: text, scope: text }),
    },
    ({ body, ip }) =>
      answerClient(async () => {
        const client = await clients.get(body.client_id);
        requireGrantType(client, deviceCodeGrant);
        const scope = grantScope(body.scope);
        beginLimiter.take(ip);
        const { deviceCode, userCode } = await grants.begin(client.clientId, scope);
        const uri = endpoints.url(pagePaths.link);
        return new Reply(
          200,
          {
            device_code: deviceCode,
            user_code: userCode,
            verification_uri: uri,
            verification_uri_complete: `${uri}?code=${userCode}`,
            expires_in: codeLifetime / 1_000,
            interval: pollInterval,
          },
          notCached,
        );
      }),
  );
}

/**
 * The page on which a user enters the code that a device shows, and allows the device to log in. Source: RFC
 * 8628, section 3.3.
 */
export function linkRoutes(deps: DeviceGrantDeps): Route[] {
  const contract = { path: pagePaths.link, auth: 'none', errors: 'page' } as const;
  const shortText = Type.String({ default: '', maxLength: 20 });
  return [
    route({ ...contract, method: 'GET', query: Type.Object({ code: shortText }) }, async (request) => {
      const session = await deps.browsers.find(request);
      if (session === undefined) return redirectToSignIn(request.url);
      return showLogin(deps, session, request.query.code);
    }),
    route(
      {
        ...contract,
        method: 'POST',
        bodyMode: 'form',
        body: Type.Object({
          code: shortText,
          form_token: Type.String({ maxLength: 100 }),
          decision: shortText,
        }),
      },
      async (request) => {
        const { code: userCode, form_token: formToken, decision } = request.body;
        const session = await deps.browsers.find(request);
        if (session === undefined)
          return redirectToSignIn(`/_synapse/client/oauth2/link?code=${encodeURIComponent(userCode)}`);
        requireFormToken(session, formToken);
        deps.codeLimiter.take(session.userId);
        const isAllowed = decision === 'allow';
        const isDone = await deps.grants.decide(userCode, session, isAllowed ? 'approved' : 'denied');
        if (!isDone) return showForm(deps, session, unknownCode, 404);
        return deps.pages.page('oauth_link_done.html', { server_name: deps.serverName, allowed: isAllowed });
      },
    ),
  ];
}

const unknownCode = 'This code is unknown, used or expired. Let the device show you a new one';

async function showLogin(deps: DeviceGrantDeps, session: BrowserSession, code: string): Promise<Reply> {
  if (code === '') return showForm(deps, session);
  deps.codeLimiter.take(session.userId);
  const grant = await deps.grants.findPending(code);
  const client = grant && (await deps.clients.find(grant.clientId));
  if (grant === undefined || client === undefined) return showForm(deps, session, unknownCode, 404);
  return deps.pages.page('oauth_link_consent.html', {
    server_name: deps.serverName,
    user_id: session.userId,
    client: client.metadata,
    client_host: new URL(client.metadata.client_uri).host,
    device_id: grant.deviceId,
    code: grant.userCode,
    shown_code: `${grant.userCode.slice(0, 4)}-${grant.userCode.slice(4)}`,
    continue: `/_synapse/client/oauth2/link?code=${grant.userCode}`,
    form_token: session.formToken,
  });
}

const showForm = (
  deps: DeviceGrantDeps,
  session: BrowserSession,
  error?: string,
  status = 200,
): Promise<Reply> =>
  deps.pages.page(
    'oauth_link.html',
    { server_name: deps.serverName, user_id: session.userId, error },
    { status },
  );
