import { Type } from 'typebox';
import { type Reply, type Route, type RouteRequest, redirect, route } from '../../kernel/http/index.ts';
import type { Pages } from '../../kernel/pages/index.ts';
import type { BrowserSession, BrowserSessions } from '../browser/browser-sessions.ts';
import { requireFormToken } from '../browser/own-pages.ts';
import { redirectToSignIn, redirectToSignInAgain } from '../browser/sign-in-routes.ts';
import type { Clients } from '../clients/clients.ts';
import { formTargetOf } from '../clients/redirect-uris.ts';
import { type Endpoints, pagePaths } from '../endpoints.ts';
import { OAuthError } from '../oauth-error.ts';
import type { AuthorizationCodes } from './authorization-codes.ts';
import {
  type AnswerTarget,
  type AuthorizationParameters,
  type AuthorizationRequest,
  answerTarget,
  answerUrl,
  authorizationParameters,
  checkAuthorization,
} from './authorization-request.ts';

export interface AuthorizationDeps {
  readonly clients: Clients;
  readonly codes: AuthorizationCodes;
  readonly browsers: BrowserSessions;
  readonly pages: Pages;
  readonly endpoints: Endpoints;
  readonly serverName: string;
  /** Whether users can create an account on a page. */
  readonly canRegister: boolean;
}

/** The page on which a user allows a client to use the account. Source: RFC 6749, section 4.1. */
export function authorizationRoutes(deps: AuthorizationDeps): Route[] {
  const contract = { path: pagePaths.authorization, auth: 'none', errors: 'page' } as const;
  return [
    route(
      { ...contract, method: 'GET', query: Type.Object(authorizationParameters) },
      (request: Pick<RouteRequest, 'cookies' | 'isSecure'> & { query: AuthorizationParameters }) =>
        answering(deps, request.query, async (authorization) => {
          const session = await deps.browsers.find(request);
          const prompts = request.query.prompt.split(' ');
          if (session !== undefined) {
            if (prompts.includes('login')) return redirectToSignInAgain(urlOf(request.query), session.userId);
            return showConsent(deps, authorization, session, request.query);
          }
          if (prompts.includes('create') && deps.canRegister)
            return redirectToRegistration(urlOf(request.query));
          return redirectToSignIn(urlOf(request.query), nameIn(request.query.login_hint));
        }),
    ),
    route(
      {
        ...contract,
        method: 'POST',
        bodyMode: 'form',
        body: Type.Object({
          ...authorizationParameters,
          form_token: Type.String({ maxLength: 100 }),
          decision: Type.String({ maxLength: 10 }),
        }),
      },
      (request) =>
        answering(deps, request.body, async (authorization) => {
          const session = await deps.browsers.find(request);
          if (session === undefined) return redirectToSignIn(urlOf(request.body));
          requireFormToken(session, request.body.form_token);
          if (request.body.decision !== 'allow') {
            throw new OAuthError('access_denied', 'The user has not allowed the login');
          }
          const { client, redirectUri, scope, codeChallenge } = authorization;
          const { userId, providerSession } = session;
          const { clientId } = client;
          const grant = { clientId, userId, scope, redirectUri, codeChallenge, providerSession };
          return redirect(
            answerUrl(authorization, deps.endpoints.issuer, { code: await deps.codes.issue(grant) }),
            303,
          );
        }),
    ),
  ];
}

/**
 * Runs `work` with the checked request, and redirects the browser to the client with the errors of `work`. Errors of
 * the request itself are shown on a page, with a link to the client: anyone can register a client, so a redirect
 * without an action of the user would let links to this server lead to any website (RFC 9700, section 4.11.2).
 */
async function answering(
  { clients, endpoints, pages }: AuthorizationDeps,
  parameters: AuthorizationParameters,
  work: (authorization: AuthorizationRequest) => Promise<Reply>,
): Promise<Reply> {
  const target: AnswerTarget = await answerTarget(parameters, clients);
  const urlOfError = (error: unknown): string => {
    if (!(error instanceof OAuthError)) throw error;
    const answer = { error: error.code, error_description: error.message };
    return answerUrl(target, endpoints.issuer, answer);
  };
  let request: AuthorizationRequest;
  try {
    request = checkAuthorization(parameters, target);
  } catch (error) {
    const { client_name: name, client_uri: uri } = target.client.metadata;
    const values = { back: urlOfError(error), back_name: name ?? new URL(uri).host };
    return pages.page(
      'oauth_request_refused.html',
      { ...values, error: (error as Error).message },
      { status: 400 },
    );
  }
  try {
    return await work(request);
  } catch (error) {
    return redirect(urlOfError(error), 303);
  }
}

function showConsent(
  { pages, serverName }: AuthorizationDeps,
  { client, redirectUri, scope }: AuthorizationRequest,
  session: BrowserSession,
  parameters: AuthorizationParameters,
): Promise<Reply> {
  const { metadata } = client;
  return pages.page(
    'oauth_consent.html',
    {
      server_name: serverName,
      user_id: session.userId,
      client: metadata,
      client_host: new URL(metadata.client_uri).host,
      device_id: scope.deviceId,
      // Only the host of a web client is shown, because the redirect URI of a native app means nothing to
      // users.
      redirect_host: new URL(redirectUri).protocol === 'https:' ? new URL(redirectUri).host : '',
      parameters: Object.entries(parameters).map(([name, value]) => ({ name, value })),
      continue: urlOf(parameters),
      form_token: session.formToken,
    },
    { policy: { 'form-action': `'self' ${formTargetOf(redirectUri)}` } },
  );
}

/**
 * Returns the URL of an authorization request on this server, without the parameter `prompt`: the user has done what it
 * asks for when the browser returns to this URL.
 */
function urlOf(parameters: AuthorizationParameters): string {
  const known = Object.keys(authorizationParameters) as (keyof typeof authorizationParameters)[];
  const query = new URLSearchParams();
  for (const name of known) {
    if (name !== 'prompt' && parameters[name] !== '') query.set(name, parameters[name]);
  }
  return `/_synapse/client/oauth2/authorize?${query}`;
}

/**
 * Returns the user id in a `login_hint` (`mxid:` and a user id, MSC4198), or the hint itself if it is a user name or a mail
 * address (OpenID Connect); empty for another hint.
 */
const nameIn = (hint: string) =>
  /^mxid:(@[^\s]{1,255})$/.exec(hint)?.[1] ?? (/^[^\s:]{1,255}$/.test(hint) ? hint : '');

/** Redirects a user to the page to create an account, which leads back to the authorization request. */
const redirectToRegistration = (back: string): Reply =>
  redirect(`/_synapse/client/register?continue=${encodeURIComponent(back)}`, 303);
