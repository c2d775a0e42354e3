import { Type } from 'typebox';
import { invalidParam } from '../../protocol/index.ts';
import { type Client, type Clients, requireGrantType } from '../clients/clients.ts';
import { isRegisteredRedirectUri } from '../clients/redirect-uris.ts';
import { OAuthError } from '../oauth-error.ts';
import { type GrantedScope, grantScope } from '../scopes.ts';

const text = Type.String({ default: '', maxLength: 2_000 });

/** Parameters of an authorization request, as the client puts them into the URL. */
export const authorizationParameters = {
  client_id: text,
  redirect_uri: text,
  response_type: text,
  response_mode: text,
  scope: text,
  state: text,
  code_challenge: text,
  code_challenge_method: text,
  prompt: text,
  login_hint: text,
};

export type AuthorizationParameters = Readonly<Record<keyof typeof authorizationParameters, string>>;

/** The client and the redirect URI to which the answer to an authorization request is sent. */
export interface AnswerTarget {
  readonly client: Client;
  readonly redirectUri: string;
  readonly state: string;
  /** The part of the redirect URI that contains the answer. */
  readonly mode: 'query' | 'fragment';
}

/** An authorization request that a user may approve. */
export interface AuthorizationRequest extends AnswerTarget {
  readonly scope: GrantedScope;
  readonly codeChallenge: string;
}

/**
 * Returns the client and the redirect URI of a request. An invalid client or redirect URI is reported to the user on a
 * page, because the answer must not be sent to a URI that cannot be trusted (RFC 6749, section 4.1.2.1).
 * @throws MatrixError M_INVALID_PARAM
 */
export async function answerTarget(
  parameters: AuthorizationParameters,
  clients: Clients,
): Promise<AnswerTarget> {
  const client = await clients.find(parameters.client_id);
  if (client === undefined) {
    throw invalidParam('This app is not known to the server. Go back to the app and sign in again');
  }
  const { redirect_uri: redirectUri, state, response_mode: mode } = parameters;
  if (!isRegisteredRedirectUri(client.metadata.redirect_uris, redirectUri)) {
    throw invalidParam(
      'This app requested a redirect to an address that it has not registered (redirect_uri)',
    );
  }
  return { client, redirectUri, state, mode: mode === 'fragment' ? 'fragment' : 'query' };
}

/**
 * Checks the parameters of an authorization request that `answerTarget` does not check.
 * Source: client-server API, "Authorisation code flow"; RFC 7636, with the method `S256` only.
 * @throws OAuthError, which is sent to the client
 */
export function checkAuthorization(
  parameters: AuthorizationParameters,
  target: AnswerTarget,
): AuthorizationRequest {
  const { response_type: type, response_mode: mode, code_challenge: challenge } = parameters;
  requireGrantType(target.client, 'authorization_code');
  if (type !== 'code') throw new OAuthError('unsupported_response_type', 'response_type must be code');
  if (mode !== '' && mode !== 'query' && mode !== 'fragment') {
    throw new OAuthError('invalid_request', 'response_mode must be query or fragment');
  }
  if (parameters.code_challenge_method !== 'S256') {
    throw new OAuthError('invalid_request', 'code_challenge_method must be S256');
  }
  if (!/^[\w-]{43}$/.test(challenge)) {
    throw new OAuthError('invalid_request', 'code_challenge must be a SHA-256 in base64url');
  }
  return { ...target, scope: grantScope(parameters.scope), codeChallenge: challenge };
}

/** Returns the URL to which the browser is redirected with the answer for the client. */
export function answerUrl(
  { redirectUri, state, mode }: AnswerTarget,
  issuer: string,
  answer: Readonly<Record<string, string>>,
): string {
  const added = new URLSearchParams({ ...(state !== '' && { state }), ...answer, iss: issuer }).toString();
  if (mode === 'fragment') return `${redirectUri}#${added}`;
  return `${redirectUri}${redirectUri.includes('?') ? '&' : '?'}${added}`;
}
