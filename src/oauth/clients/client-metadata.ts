import type { JsonObject, JsonValue } from '../../protocol/index.ts';
import { grantTypes } from '../metadata.ts';
import { OAuthError } from '../oauth-error.ts';
import { isAllowedRedirectUri, isPlainHttps, isSameOrSubdomain, parseUri } from './redirect-uris.ts';

/** The metadata of a client as it is registered. Source: client-server API, "Client metadata". */
export interface ClientMetadata {
  readonly client_uri: string;
  readonly client_name?: string;
  readonly logo_uri?: string;
  readonly tos_uri?: string;
  readonly policy_uri?: string;
  readonly redirect_uris: readonly string[];
  readonly response_types: readonly string[];
  readonly grant_types: readonly string[];
  readonly token_endpoint_auth_method: 'none';
  readonly application_type: 'web' | 'native';
}

/** Maximum characters of a URI. */
const maxUri = 2_000;

/** Maximum characters of a name. */
const maxName = 100;

/** Maximum number of strings in a list of the metadata. */
const maxEntries = 100;

/** Maximum number of redirect URIs. */
const maxRedirectUris = 20;

const invalid = (message: string) => new OAuthError('invalid_client_metadata', message);

/**
 * Checks the metadata that a client registers. Leaves out the parts that this server does not use:
 * translations, unknown fields, and grant and response types that it does not support.
 * @throws OAuthError invalid_client_metadata, invalid_redirect_uri
 */
export function checkClientMetadata(body: JsonObject): ClientMetadata {
  const clientUri = uriIn(body, 'client_uri');
  if (clientUri === undefined) throw invalid('client_uri is missing');
  const host = new URL(clientUri).hostname;
  if (!host.includes('.')) throw invalid('The host of client_uri must be a domain');
  const applicationType = body['application_type'] ?? 'web';
  if (applicationType !== 'web' && applicationType !== 'native') {
    throw invalid('application_type must be web or native');
  }
  const method = body['token_endpoint_auth_method'] ?? 'none';
  if (method !== 'none') throw invalid('token_endpoint_auth_method must be none');
  const redirectUris = textsIn(body, 'redirect_uris');
  if (redirectUris.length > maxRedirectUris)
    throw invalid(`A client can register at most ${maxRedirectUris} redirect URIs`);
  for (const uri of redirectUris) {
    if (uri.length > maxUri || !isAllowedRedirectUri(uri, host, applicationType)) {
      throw new OAuthError(
        'invalid_redirect_uri',
        `The redirect URI is too long, or not allowed with this client_uri and application_type: ${uri.slice(0, 200)}`,
      );
    }
  }
  const grants = body['grant_types'] === undefined ? ['authorization_code'] : textsIn(body, 'grant_types');
  if (grants.includes('authorization_code') && redirectUris.length === 0) {
    throw new OAuthError('invalid_redirect_uri', 'redirect_uris is missing or empty');
  }
  const responseTypes = body['response_types'] === undefined ? ['code'] : textsIn(body, 'response_types');
  if (grants.includes('authorization_code') && !responseTypes.includes('code')) {
    throw invalid('response_types must contain code for the grant type authorization_code');
  }
  return {
    client_uri: clientUri,
    ...nameIn(body),
    ...linksIn(body, host),
    redirect_uris: redirectUris,
    response_types: responseTypes.filter((type) => type === 'code'),
    grant_types: grantTypes.filter((type) => grants.includes(type)),
    token_endpoint_auth_method: 'none',
    application_type: applicationType,
  };
}

/** Returns the name without control, format, private-use and unassigned characters, and cuts it to `maxName`. */
function nameIn(body: JsonObject): { client_name?: string } {
  const name = body['client_name'];
  if (name === undefined) return {};
  if (typeof name !== 'string') throw invalid('client_name must be a string');
  const plain = name
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}]/gu, '')
    .trim()
    .slice(0, maxName)
    .toWellFormed();
  return plain === '' ? {} : { client_name: plain };
}

type Links = { logo_uri?: string; tos_uri?: string; policy_uri?: string };

function linksIn(body: JsonObject, clientHost: string): Links {
  const links: Links = {};
  for (const field of ['logo_uri', 'tos_uri', 'policy_uri'] as const) {
    const uri = uriIn(body, field);
    if (uri === undefined) continue;
    if (!isSameOrSubdomain(new URL(uri).hostname, clientHost)) {
      throw invalid(`${field} must be on the host of client_uri, or below it`);
    }
    links[field] = uri;
  }
  return links;
}

/** Returns a field that holds an `https` URI; `undefined` when the field is absent or null. @throws OAuthError invalid_client_metadata */
function uriIn(body: JsonObject, field: string): string | undefined {
  const value = body[field];
  if (value === undefined || value === null) return undefined;
  const uri = typeof value === 'string' && value.length <= maxUri ? parseUri(value) : undefined;
  if (uri === undefined || !isPlainHttps(uri)) {
    throw invalid(
      `${field} must be an https:// URL of at most ${maxUri} characters, without user, password and fragment`,
    );
  }
  return value as string;
}

/**
 * Returns a list of strings without repetitions; empty when the field is absent or null.
 * @throws OAuthError invalid_client_metadata
 */
function textsIn(body: JsonObject, field: string): string[] {
  const value: JsonValue = body[field] ?? [];
  if (
    !Array.isArray(value) ||
    value.length > maxEntries ||
    !value.every((text) => typeof text === 'string')
  ) {
    throw invalid(`${field} must be a list of at most ${maxEntries} strings`);
  }
  return [...new Set(value as string[])];
}
